import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import jakarta.jms.*;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Java's JMS clients, doing what standard input says: a JSON object a line, answered by one on standard output.
 *
 * A value is a pair of its Java type and its text, such as ["int", "7"]; a destination a pair of kind and name. java_peer.py drives it.
 */
public class Peer {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static final Map<String, Line> LINES = new HashMap<>();

    /** One connection with one session, and what was opened in it. */
    static class Line {
        Connection connection;
        Session session;
        final Map<String, MessageConsumer> consumers = new HashMap<>();
        final Map<String, Destination> temporaries = new HashMap<>();
        Message last;
    }

    public static void main(String[] none) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject answer = new JsonObject();
            try {
                answer.add("value", obey(JsonParser.parseString(line).getAsJsonObject()));
            } catch (Throwable e) {
                answer.addProperty("error", e.toString());
            }
            OUT.println(answer);
        }
        for (Line line : LINES.values()) line.connection.close();
    }

    static JsonElement obey(JsonObject c) throws Exception {
        if (text(c, "do").equals("open")) {
            Line line = new Line();
            line.connection = factory(c).createConnection();
            if (has(c, "client_id")) line.connection.setClientID(text(c, "client_id"));
            line.connection.start();
            line.session = line.connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            LINES.put(text(c, "line"), line);
            return JsonNull.INSTANCE;
        }
        Line line = LINES.get(text(c, "line"));
        switch (text(c, "do")) {
            case "close":
                LINES.remove(text(c, "line")).connection.close();
                return JsonNull.INSTANCE;
            case "temporary": {
                boolean topic = text(c, "kind").equals("temporary topic");
                Destination made = topic ? line.session.createTemporaryTopic() : line.session.createTemporaryQueue();
                line.temporaries.put(name(made), made);
                return told(made);
            }
            case "send":
                return send(line, c);
            case "consume":
                line.consumers.put(text(c, "consumer"), consumer(line, c));
                return JsonNull.INSTANCE;
            case "receive": {
                Message message = line.consumers.get(text(c, "consumer")).receive(c.get("timeout_ms").getAsLong());
                line.last = message;
                return message == null ? JsonNull.INSTANCE : told(message);
            }
            case "stop consuming":
                line.consumers.remove(text(c, "consumer")).close();
                return JsonNull.INSTANCE;
            case "answer":
                try (MessageProducer producer = line.session.createProducer(line.last.getJMSReplyTo())) {
                    producer.send(line.session.createTextMessage(text(c, "text")));
                }
                return JsonNull.INSTANCE;
            case "unsubscribe":
                line.session.unsubscribe(text(c, "name"));
                return JsonNull.INSTANCE;
            default:
                throw new IllegalArgumentException(text(c, "do"));
        }
    }

    static ConnectionFactory factory(JsonObject c) throws Exception {
        if (text(c, "wire").equals("amqp")) return new JmsConnectionFactory(text(c, "user"), text(c, "password"), text(c, "url"));
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(text(c, "user"), text(c, "password"), text(c, "url"));
        factory.setTrustAllPackages(false);
        return factory;
    }

    static MessageConsumer consumer(Line line, JsonObject c) throws Exception {
        Destination from = destination(line, c.getAsJsonArray("from"));
        String selector = has(c, "selector") ? text(c, "selector") : null;
        if (has(c, "durable")) return line.session.createDurableSubscriber((Topic) from, text(c, "durable"), selector, false);
        if (has(c, "shared")) return line.session.createSharedDurableConsumer((Topic) from, text(c, "shared"), selector);
        return line.session.createConsumer(from, selector);
    }

    static JsonElement send(Line line, JsonObject c) throws Exception {
        JsonObject given = c.getAsJsonObject("message");
        Message message = make(line.session, given);
        for (Map.Entry<String, JsonElement> property : given.getAsJsonObject("properties").entrySet()) {
            message.setObjectProperty(property.getKey(), value(property.getValue()));
        }
        if (has(given, "jms_type")) message.setJMSType(text(given, "jms_type"));
        if (has(given, "correlation_id")) message.setJMSCorrelationID(text(given, "correlation_id"));
        if (has(given, "correlation_bytes")) message.setJMSCorrelationIDAsBytes(bytes(text(given, "correlation_bytes")));
        if (has(given, "reply_to")) message.setJMSReplyTo(destination(line, given.getAsJsonArray("reply_to")));
        try (MessageProducer producer = line.session.createProducer(destination(line, c.getAsJsonArray("to")))) {
            long delay = c.get("delay_ms").getAsLong();
            if (delay > 0) producer.setDeliveryDelay(delay);
            producer.send(message, c.get("mode").getAsInt(), c.get("priority").getAsInt(), c.get("ttl_ms").getAsLong());
        }
        return stamps(message);
    }

    static JsonObject stamps(Message message) throws Exception {
        JsonObject told = new JsonObject();
        told.addProperty("id", message.getJMSMessageID());
        told.addProperty("timestamp", message.getJMSTimestamp());
        told.addProperty("expiration", message.getJMSExpiration());
        told.addProperty("delivery_time", message.getJMSDeliveryTime());
        return told;
    }

    static Message make(Session session, JsonObject given) throws Exception {
        JsonElement body = given.get("body");
        switch (text(given, "kind")) {
            case "text":
                return session.createTextMessage(body.isJsonNull() ? null : body.getAsString());
            case "bytes": {
                BytesMessage message = session.createBytesMessage();
                message.writeBytes(bytes(body.getAsString()));
                return message;
            }
            case "map": {
                MapMessage message = session.createMapMessage();
                for (Map.Entry<String, JsonElement> e : body.getAsJsonObject().entrySet()) message.setObject(e.getKey(), value(e.getValue()));
                return message;
            }
            case "stream": {
                StreamMessage message = session.createStreamMessage();
                for (JsonElement item : body.getAsJsonArray()) message.writeObject(value(item));
                return message;
            }
            case "object":
                return session.createObjectMessage((java.io.Serializable) value(body));
            default:
                return session.createMessage();
        }
    }

    static JsonObject told(Message message) throws Exception {
        JsonObject told = stamps(message);
        tellBody(message, told);
        JsonObject properties = new JsonObject();
        for (Object name : Collections.list((Enumeration<?>) message.getPropertyNames())) {
            properties.add((String) name, shown(message.getObjectProperty((String) name)));
        }
        told.add("properties", properties);
        told.addProperty("jms_type", message.getJMSType());
        told.addProperty("correlation_id", message.getJMSCorrelationID());
        try {
            byte[] id = message.getJMSCorrelationIDAsBytes();
            told.addProperty("correlation_bytes", id == null ? null : HexFormat.of().formatHex(id));
        } catch (JMSException e) {
            told.add("correlation_bytes", JsonNull.INSTANCE);   // qpid-jms: this id is a text
        }
        told.add("reply_to", told(message.getJMSReplyTo()));
        told.add("destination", told(message.getJMSDestination()));
        told.addProperty("priority", message.getJMSPriority());
        told.addProperty("mode", message.getJMSDeliveryMode());
        told.addProperty("redelivered", message.getJMSRedelivered());
        return told;
    }

    static void tellBody(Message message, JsonObject told) throws Exception {
        String kind = "message";
        JsonElement body = JsonNull.INSTANCE;
        if (message instanceof TextMessage) {
            kind = "text";
            String text = ((TextMessage) message).getText();
            if (text != null) body = new JsonPrimitive(text);
        } else if (message instanceof BytesMessage) {
            kind = "bytes";
            byte[] data = new byte[(int) ((BytesMessage) message).getBodyLength()];
            ((BytesMessage) message).readBytes(data);
            body = new JsonPrimitive(HexFormat.of().formatHex(data));
        } else if (message instanceof MapMessage) {
            kind = "map";
            JsonObject entries = new JsonObject();
            for (Object name : Collections.list((Enumeration<?>) ((MapMessage) message).getMapNames())) {
                entries.add((String) name, shown(((MapMessage) message).getObject((String) name)));
            }
            body = entries;
        } else if (message instanceof StreamMessage) {
            kind = "stream";
            JsonArray items = new JsonArray();
            try {
                while (true) items.add(shown(((StreamMessage) message).readObject()));
            } catch (MessageEOFException end) {
                body = items;   // all of it was read
            }
        } else if (message instanceof ObjectMessage) {
            kind = "object";
            try {
                body = shown(((ObjectMessage) message).getObject());
            } catch (Exception e) {   // not the bytes of a Java object
                body = pair("unreadable", e.toString());
            }
        }
        told.addProperty("kind", kind);
        told.add("body", body);
    }

    static Destination destination(Line line, JsonArray pair) throws Exception {
        String name = pair.get(1).getAsString();
        switch (pair.get(0).getAsString()) {
            case "queue":
                return line.session.createQueue(name);
            case "topic":
                return line.session.createTopic(name);
            default:
                return line.temporaries.get(name);
        }
    }

    static JsonElement told(Destination destination) throws Exception {
        if (destination == null) return JsonNull.INSTANCE;
        String kind = destination instanceof TemporaryQueue ? "temporary queue" : destination instanceof TemporaryTopic ? "temporary topic"
                : destination instanceof Topic ? "topic" : "queue";
        return pair(kind, name(destination));
    }

    static String name(Destination destination) throws JMSException {
        return destination instanceof Topic ? ((Topic) destination).getTopicName() : ((Queue) destination).getQueueName();
    }

    static JsonArray pair(String first, String second) {
        JsonArray pair = new JsonArray();
        pair.add(first);
        pair.add(second);
        return pair;
    }

    static JsonElement shown(Object value) {
        if (value == null) return pair("null", "");
        if (value instanceof byte[]) return pair("bytes", HexFormat.of().formatHex((byte[]) value));
        String kind = value instanceof Integer ? "int" : value instanceof Character ? "char" : value.getClass().getSimpleName().toLowerCase();
        return pair(kind, value.toString());
    }

    static Object value(JsonElement pair) {
        String text = pair.getAsJsonArray().get(1).getAsString();
        switch (pair.getAsJsonArray().get(0).getAsString()) {
            case "null":
                return null;
            case "boolean":
                return Boolean.valueOf(text);
            case "byte":
                return Byte.valueOf(text);
            case "short":
                return Short.valueOf(text);
            case "char":
                return text.charAt(0);
            case "int":
                return Integer.valueOf(text);
            case "long":
                return Long.valueOf(text);
            case "float":
                return Float.valueOf(text);
            case "double":
                return Double.valueOf(text);
            case "bytes":
                return bytes(text);
            default:
                return text;
        }
    }

    static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex);
    }

    static boolean has(JsonObject c, String name) {
        return c.has(name) && !c.get(name).isJsonNull();
    }

    static String text(JsonObject c, String name) {
        return c.get(name).getAsString();
    }
}

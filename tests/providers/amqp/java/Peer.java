import jakarta.jms.*;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.TreeMap;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * A Java JMS client that does what its standard input says, a command a line, fields separated by tabs; each is answered by one
 * line, "ok" or "error" and what there is to tell. Driven by test_interop_with_java.py.
 */
public class Peer {
    static final String TEXT = "h\u00e9llo \ud83d\ude00";
    static final String PLAIN = "h\u00e9llo";
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] a) throws Exception {
        Connection connection = new JmsConnectionFactory(a[1], a[2], a[0]).createConnection();
        if (a.length > 3) connection.setClientID(a[3]);
        connection.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        OUT.println("ok\tready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                OUT.println("ok\t" + obey(session, line.split("\t", -1)));
            } catch (Exception e) {
                OUT.println("error\t" + e.toString().replace('\n', ' ').replace('\t', ' '));
            }
        }
        connection.close();
    }

    static String obey(Session session, String[] c) throws Exception {
        switch (c[0]) {
            case "send": {
                Message message = make(session, c[2]);
                message.setJMSCorrelationID("corr-1");
                message.setJMSType("kind");
                message.setJMSReplyTo(session.createTopic("answers"));
                fill(message);
                MessageProducer producer = session.createProducer(destination(session, c[1]));
                producer.send(message, DeliveryMode.NON_PERSISTENT, 7, 600000);
                producer.close();
                return message.getJMSMessageID();
            }
            case "receive": {
                MessageConsumer consumer = session.createConsumer(destination(session, c[1]), c[2].isEmpty() ? null : c[2]);
                Message message = consumer.receive(8000);
                consumer.close();
                return message == null ? "nothing" : tell(message);
            }
            case "durable": {
                Topic topic = session.createTopic(c[1]);
                MessageConsumer consumer = c.length > 4
                    ? session.createDurableConsumer(topic, c[2], c[4], false)
                    : session.createDurableConsumer(topic, c[2]);
                Message message = c[3].equals("make") ? null : consumer.receive(8000);
                consumer.close();
                return message == null ? "nothing" : tell(message);
            }
            case "unsubscribe":
                session.unsubscribe(c[1]);
                return "done";
            default:
                throw new IllegalArgumentException(c[0]);
        }
    }

    static Destination destination(Session session, String name) throws Exception {
        return name.startsWith("topic:") ? session.createTopic(name.substring(6)) : session.createQueue(name);
    }

    static void fill(Message m) throws Exception {
        m.setBooleanProperty("z", true);
        m.setByteProperty("y", (byte) 1);
        m.setShortProperty("s", (short) 2);
        m.setIntProperty("i", 3);
        m.setLongProperty("l", 4L);
        m.setFloatProperty("f", 1.5f);
        m.setDoubleProperty("d", 2.5);
        m.setStringProperty("t", TEXT);
        m.setStringProperty("JMSXGroupID", "g");
        m.setIntProperty("JMSXGroupSeq", 5);
    }

    static Message make(Session session, String kind) throws Exception {
        switch (kind) {
            case "MESSAGE":
                return session.createMessage();
            case "TEXT":
                return session.createTextMessage(TEXT);
            case "BYTES": {
                BytesMessage m = session.createBytesMessage();
                m.writeBytes(new byte[] {0, (byte) 255});
                return m;
            }
            case "OBJECT":
                return session.createObjectMessage(TEXT);
            case "MAP": {
                MapMessage m = session.createMapMessage();
                m.setBoolean("z", true);
                m.setByte("y", (byte) 1);
                m.setShort("s", (short) 2);
                m.setChar("c", 'x');
                m.setInt("i", 3);
                m.setLong("l", 4L);
                m.setFloat("f", 1.5f);
                m.setDouble("d", 2.5);
                m.setString("t", PLAIN);
                m.setBytes("b", new byte[] {0, (byte) 255});
                m.setObject("n", null);
                return m;
            }
            default: {
                StreamMessage m = session.createStreamMessage();
                m.writeBoolean(true);
                m.writeByte((byte) 1);
                m.writeShort((short) 2);
                m.writeChar('x');
                m.writeInt(3);
                m.writeLong(4L);
                m.writeFloat(1.5f);
                m.writeDouble(2.5);
                m.writeString(PLAIN);
                m.writeBytes(new byte[] {0, (byte) 255});
                m.writeObject(null);
                return m;
            }
        }
    }

    static String show(Object value) {
        if (value == null) return "null";
        if (value instanceof byte[]) {
            StringBuilder text = new StringBuilder("bytes:");
            for (byte b : (byte[]) value) text.append(String.format("%02x", b));
            return text.toString();
        }
        return value.getClass().getSimpleName() + ":" + value;
    }

    @SuppressWarnings("unchecked")
    static String tell(Message m) throws Exception {
        String kind = "MESSAGE";
        List<String> body = new ArrayList<>();
        if (m instanceof TextMessage) {
            kind = "TEXT";
            body.add(show(((TextMessage) m).getText()));
        } else if (m instanceof BytesMessage) {
            kind = "BYTES";
            byte[] data = new byte[(int) ((BytesMessage) m).getBodyLength()];
            ((BytesMessage) m).readBytes(data);
            body.add(show(data));
        } else if (m instanceof ObjectMessage) {
            kind = "OBJECT";
            body.add(show(((ObjectMessage) m).getObject()));
        } else if (m instanceof MapMessage) {
            kind = "MAP";
            for (String name : new TreeMap<String, Object>(named((MapMessage) m)).keySet()) {
                body.add(name + "=" + show(((MapMessage) m).getObject(name)));
            }
        } else if (m instanceof StreamMessage) {
            kind = "STREAM";
            try {
                while (true) body.add(show(((StreamMessage) m).readObject()));
            } catch (MessageEOFException end) {
                // all of it was read
            }
        }
        List<String> properties = new ArrayList<>();
        for (String name : (List<String>) Collections.list((Enumeration<String>) m.getPropertyNames())) {
            properties.add(name + "=" + show(m.getObjectProperty(name)));
        }
        Collections.sort(properties);
        String reply = m.getJMSReplyTo() instanceof Topic ? "topic:" + ((Topic) m.getJMSReplyTo()).getTopicName() : "" + m.getJMSReplyTo();
        String from = m.getJMSDestination() instanceof Topic ? "topic" : "queue";
        return String.join("\t", kind, String.join("\u0001", body), String.join("\u0001", properties), m.getJMSMessageID(),
                m.getJMSCorrelationID(), m.getJMSType(), reply, "" + m.getJMSPriority(), "" + m.getJMSDeliveryMode(),
                "" + m.getJMSTimestamp(), "" + m.getJMSExpiration(), from);
    }

    static TreeMap<String, Object> named(MapMessage m) throws Exception {
        TreeMap<String, Object> found = new TreeMap<>();
        for (Object name : Collections.list(m.getMapNames())) found.put((String) name, null);
        return found;
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.selector.filter.Filterable;
import org.apache.activemq.artemis.utils.SelectorTranslator;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.MessageId;
import org.apache.activemq.filter.MessageEvaluationContext;

/**
 * The selector evaluators of Artemis and ActiveMQ Classic, without their brokers.
 *
 * <p>Arguments: {@code evaluate} or {@code rate}, then {@code artemis}, {@code artemis-amqp} (header names and literals are
 * translated first, as the AMQP acceptor does) or {@code classic}. Standard input has one row a line: the selector, then
 * {@code name=type:value} for each value, separated by tabs, each part URL-encoded.
 *
 * <p>{@code evaluate} prints T, F, I (selector refused) or E (failed while evaluating) for each row. {@code rate} parses all
 * rows first, evaluates them over and over, and prints evaluations a second of processor time, once a second.
 */
public final class Evaluators {

   /** Kept, so that the compiler cannot drop evaluations whose result nobody reads. */
   private static int matched;

   private interface Test {
      boolean matches() throws Exception;
   }

   public static void main(String[] arguments) throws Exception {
      boolean rate = arguments[0].equals("rate");
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
      List<Test> tests = new ArrayList<>();
      for (String line = in.readLine(); line != null; line = in.readLine()) {
         Test test;
         try {
            test = test(arguments[1], line.split("\t", -1));
         } catch (Exception refused) {
            test = null;
         }
         if (rate) {
            tests.add(test);
         } else {
            out.println(answer(test));
         }
      }
      if (rate) {
         for (int round = 0; round < 6; round++) {
            out.println(rate(tests));
         }
      }
      out.flush();
   }

   private static String answer(Test test) {
      if (test == null) {
         return "I";
      }
      try {
         return test.matches() ? "T" : "F";
      } catch (Exception failed) {
         return "E";
      }
   }

   private static long rate(List<Test> tests) throws Exception {
      ThreadMXBean threads = ManagementFactory.getThreadMXBean();
      long count = 0;
      long start = threads.getCurrentThreadCpuTime();
      long used = 0;
      while (used < 1_000_000_000L) {
         for (int times = 0; times < 1_000_000 / tests.size(); times++) {
            for (Test test : tests) {
               if (test.matches()) {
                  matched++;
               }
            }
            count += tests.size();
         }
         used = threads.getCurrentThreadCpuTime() - start;
      }
      return count * 1_000_000_000L / used;
   }

   private static Test test(String kind, String[] row) throws Exception {
      String selector = decoded(row[0]);
      Map<String, Object> values = new HashMap<>();
      for (int i = 1; i < row.length; i++) {
         int equals = row[i].indexOf('=');
         int colon = row[i].indexOf(':', equals);
         values.put(decoded(row[i].substring(0, equals)),
                    value(row[i].substring(equals + 1, colon), decoded(row[i].substring(colon + 1))));
      }
      return kind.equals("classic") ? classic(selector, values) : artemis(kind, selector, values);
   }

   private static Test artemis(String kind, String selector, Map<String, Object> values) throws Exception {
      String text = kind.equals("artemis-amqp") ? SelectorTranslator.convertToActiveMQFilterString(selector) : selector;
      org.apache.activemq.artemis.selector.filter.BooleanExpression expression =
         org.apache.activemq.artemis.selector.impl.SelectorParser.parse(text.trim());
      Map<SimpleString, Object> byName = new HashMap<>();
      values.forEach((name, value) -> byName.put(SimpleString.of(name), value));
      Filterable message = new Filterable() {
         @Override
         public <T> T getBodyAs(Class<T> type) {
            return null;
         }

         @Override
         public Object getProperty(SimpleString name) {
            return byName.get(name);
         }

         @Override
         public Object getLocalConnectionId() {
            return null;
         }
      };
      return () -> expression.matches(message);
   }

   private static Test classic(String selector, Map<String, Object> values) throws Exception {
      // The cache would hand the expression of a converting selector to a plain one of the same text.
      org.apache.activemq.selector.SelectorParser.clearCache();
      org.apache.activemq.filter.BooleanExpression expression = org.apache.activemq.selector.SelectorParser.parse(selector);
      ActiveMQMessage message = new ActiveMQMessage();
      for (Map.Entry<String, Object> entry : values.entrySet()) {
         set(message, entry.getKey(), entry.getValue());
      }
      MessageEvaluationContext context = new MessageEvaluationContext();
      context.setMessageReference(message);
      return () -> expression.matches(context);
   }

   private static void set(ActiveMQMessage message, String name, Object value) throws Exception {
      switch (name) {
         case "JMSType" -> message.setType((String) value);
         case "JMSCorrelationID" -> message.setCorrelationId((String) value);
         case "JMSXGroupID" -> message.setGroupID((String) value);
         case "JMSPriority" -> message.setPriority(((Number) value).byteValue());
         case "JMSTimestamp" -> message.setTimestamp(((Number) value).longValue());
         case "JMSDeliveryMode" -> message.setPersistent("PERSISTENT".equals(value));
         case "JMSMessageID" -> {
            MessageId id = new MessageId();
            id.setTextView((String) value);
            message.setMessageId(id);
         }
         default -> message.setProperty(name, value);
      }
   }

   private static Object value(String type, String text) {
      return switch (type) {
         case "boolean" -> Boolean.valueOf(text);
         case "byte" -> Byte.valueOf(text);
         case "short" -> Short.valueOf(text);
         case "int" -> Integer.valueOf(text);
         case "long" -> Long.valueOf(text);
         case "float" -> Float.valueOf(text);
         case "double" -> Double.valueOf(text);
         default -> text;
      };
   }

   private static String decoded(String text) {
      return URLDecoder.decode(text, StandardCharsets.UTF_8);
   }
}

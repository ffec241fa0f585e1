import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Sends and receives with Apache Qpid JMS what run.py does with jmsapi; a line of rates for each round. */
public class Bench {
    public static void main(String[] a) throws Exception {
        int messages = Integer.parseInt(a[4]);
        int rounds = Integer.parseInt(a[5]);
        String body = "x".repeat(1024);
        try (Connection connection = new JmsConnectionFactory(a[1], a[2], a[0]).createConnection()) {
            connection.start();
            for (int round = 0; round < rounds; round++) {
                Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                Queue queue = session.createQueue(a[3]);
                MessageProducer producer = session.createProducer(queue);
                producer.setDeliveryMode(DeliveryMode.PERSISTENT);
                Semaphore room = new Semaphore(1000);
                CountDownLatch sent = new CountDownLatch(messages);
                CompletionListener listener = new CompletionListener() {
                    public void onCompletion(Message message) { room.release(); sent.countDown(); }
                    public void onException(Message message, Exception e) { e.printStackTrace(); room.release(); sent.countDown(); }
                };
                long begin = System.nanoTime();
                for (int i = 0; i < messages; i++) {
                    TextMessage message = session.createTextMessage(body);
                    message.setIntProperty("a", 1);
                    message.setStringProperty("b", "two");
                    message.setDoubleProperty("c", 3.5);
                    room.acquire();
                    producer.send(message, listener);
                }
                sent.await();
                double send = messages / ((System.nanoTime() - begin) / 1e9);
                producer.close();
                begin = System.nanoTime();
                MessageConsumer consumer = session.createConsumer(queue);
                for (int i = 0; i < messages; i++) {
                    TextMessage message = (TextMessage) consumer.receive(30000);
                    if (message.getText().length() != 1024 || message.getIntProperty("a") != 1) throw new IllegalStateException();
                }
                double receive = messages / ((System.nanoTime() - begin) / 1e9);
                session.close();
                System.out.printf("%.1f %.1f%n", send, receive);
                System.out.flush();
            }
        }
    }
}

package halcyon.cassandra;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A message of docs/formats/compaction-protocol.md. */
public final class Frame
{
    public static final byte HELLO = 0x01, TASK = 0x02, BOUNDS = 0x03, GRANTED = 0x04, GO_ON = 0x05, STOP = 0x06, PING = 0x07;
    public static final byte WELCOME = (byte) 0x81, ASK_BOUND = (byte) 0x82, ASK_OUTPUT = (byte) 0x83, TICK = (byte) 0x84,
                             DONE = (byte) 0x85, FAILED = (byte) 0x86, PONG = (byte) 0x87;

    public static final int MAGIC = 0x48434d50;
    public static final int VERSION = 5;
    private static final int LONGEST = 16 << 20;
    private static final int HEADER = 9;
    private static final int LONGEST_TEXT = 64 << 10;

    public final byte kind;
    public final long task;
    public final ByteBuffer body;

    private Frame(byte kind, long task, ByteBuffer body)
    {
        this.kind = kind;
        this.task = task;
        this.body = body;
    }

    /** Stands for the end of the stream. */
    static Frame end()
    {
        return new Frame((byte) 0, 0, ByteBuffer.allocate(0));
    }

    /** Null at the end of the stream. */
    static Frame read(DataInputStream from) throws IOException
    {
        int length;
        try
        {
            length = from.readInt();
        }
        catch (EOFException e)
        {
            return null;
        }
        if (length < HEADER || length > LONGEST)
            throw new Failed("Protocol", "a frame of " + length + " bytes");
        byte kind = from.readByte();
        long task = from.readLong();
        byte[] body = new byte[length - HEADER];
        from.readFully(body);
        return new Frame(kind, task, ByteBuffer.wrap(body));
    }

    static void write(DataOutputStream to, byte kind, long task, byte[] body) throws IOException
    {
        if (body.length > LONGEST - HEADER)
            throw new IOException("a message of " + body.length + " bytes is longer than a frame");
        to.writeInt(HEADER + body.length);
        to.writeByte(kind);
        to.writeLong(task);
        to.write(body);
        to.flush();
    }

    /** A count of items of at least a byte each. */
    public int count() throws IOException
    {
        int count = body.getInt();
        if (count < 0 || count > body.remaining())
            throw new IOException(count + " items in " + body.remaining() + " bytes");
        return count;
    }

    public String text() throws IOException
    {
        byte[] bytes = new byte[count()];
        body.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    public static void putText(DataOutputStream to, String text) throws IOException
    {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        if (bytes.length > LONGEST_TEXT)
            throw new IOException("a text of " + bytes.length + " bytes");
        to.writeInt(bytes.length);
        to.write(bytes);
    }
}

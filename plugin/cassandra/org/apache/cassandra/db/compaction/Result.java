package org.apache.cassandra.db.compaction;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

import halcyon.cassandra.Frame;

/** What the service says of a compaction that it has done. */
final class Result
{
    final List<Output> outputs = new ArrayList<>();
    final long partitions;
    /** At n: partitions that were in n + 1 inputs. */
    final long[] merged;

    static final class Output
    {
        /** Of Data.db. */
        final String path;
        final List<Part> parts = new ArrayList<>();

        private Output(String path)
        {
            this.path = path;
        }
    }

    /** A component. */
    static final class Part
    {
        final String name;
        final long length;
        final boolean hasChecksum;
        final int checksum;

        private Part(Frame frame) throws IOException
        {
            name = frame.text();
            length = frame.body.getLong();
            hasChecksum = frame.body.get() != 0;
            checksum = frame.body.getInt();
        }
    }

    Result(Frame frame) throws IOException
    {
        for (int i = frame.count(); i > 0; i--)
        {
            Output output = new Output(frame.text());
            for (int parts = frame.count(); parts > 0; parts--)
                output.parts.add(new Part(frame));
            outputs.add(output);
        }
        frame.body.getLong();
        frame.body.getLong();
        partitions = frame.body.getLong();
        int counts = frame.count();
        merged = new long[Math.max(0, counts - 1)];
        for (int n = 0; n < counts; n++)
        {
            long count = frame.body.getLong();
            // None were in no input.
            if (n > 0)
                merged[n - 1] = count;
        }
    }
}

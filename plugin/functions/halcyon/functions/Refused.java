package halcyon.functions;

/** A body that is not run; the message is for the client. */
final class Refused extends Exception {
    Refused(String message) {
        super(message);
    }
}

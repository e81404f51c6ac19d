/// A part of a request. Times are nanoseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace: [u8; 16],
    pub id: [u8; 8],
    /// `None`: the span is the whole request.
    pub parent: Option<[u8; 8]>,
    pub name: String,
    pub began: u64,
    pub ended: u64,
    pub attributes: Vec<(String, String)>,
    pub events: Vec<(u64, String)>,
    /// Why the request failed.
    pub error: Option<String>,
}

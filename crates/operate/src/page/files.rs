//! The files of the page, which are part of the program: no browser fetches anything from another host.

pub(super) struct File {
    path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) bytes: &'static [u8],
}

macro_rules! file {
    ($path:literal, $of:literal, $content_type:literal) => {
        File {
            path: $path,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../../assets/", $of)),
        }
    };
}

/// uPlot is as its authors publish it, with its licence: assets/README.md.
const FILES: [File; 10] = [
    file!("/", "page.html", "text/html; charset=utf-8"),
    file!("/page.css", "page.css", "text/css; charset=utf-8"),
    file!("/page.js", "page.js", "text/javascript; charset=utf-8"),
    file!("/figures.js", "figures.js", "text/javascript; charset=utf-8"),
    file!("/charts.js", "charts.js", "text/javascript; charset=utf-8"),
    file!("/lists.js", "lists.js", "text/javascript; charset=utf-8"),
    file!("/icon.svg", "icon.svg", "image/svg+xml"),
    file!("/uPlot.js", "uplot/uPlot.iife.min.js", "text/javascript; charset=utf-8"),
    file!("/uPlot.css", "uplot/uPlot.min.css", "text/css; charset=utf-8"),
    file!("/uPlot.txt", "uplot/LICENSE", "text/plain; charset=utf-8"),
];

pub(super) fn find(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the whole page is small, and that none of its files names another host or has code where the policy forbids it.
    #[test]
    fn files_are_small_and_our_own() {
        let total: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        assert!(total <= 300 << 10, "{total} bytes");
        for file in FILES.iter().filter(|file| !file.path.contains("uPlot")) {
            let text = std::str::from_utf8(file.bytes).expect("text");
            for foreign in ["https://", "src=\"http", "//cdn", "@import", "url(", "innerHTML"] {
                assert!(!text.contains(foreign), "{}: {foreign}", file.path);
            }
            assert!(!text.contains("style=\"") && !text.contains(" onclick"), "{}", file.path);
        }
    }
}

//! `png IN.svg OUT.png`: draws a picture at twice its size.

use std::error::Error;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

const SCALE: f32 = 2.0;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(from), Some(to)) = (words.next(), words.next()) else {
        return Err("usage: png IN.svg OUT.png".into());
    };
    let mut options = Options::default();
    options.fontdb_mut().load_system_fonts();
    if options.fontdb.is_empty() {
        return Err("no fonts on this machine, and without them no text".into());
    }
    let tree = Tree::from_data(&std::fs::read(from)?, &options)?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or("a picture without size")?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("a picture too large")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.save_png(to)?;
    Ok(())
}

//! The page of the committed record without scripts, and its permanent links.

use serde_json::json;

use crate::tests::browser::{of_group, on_the_committed_page};
use crate::tests::holds;

/// Without scripts the page says what is missing; every answer and every figure is there.
#[test]
#[ignore = "needs Chromium"]
fn without_scripts_the_answers_are_there() {
    on_the_committed_page(|browser, page| {
        let off = json!({"value": true});
        browser.call("Emulation.setScriptExecutionDisabled", off)?;
        browser.open(page)?;
        // What is not shown is not in it.
        let text = browser.eval("document.body.innerText")?;
        let text = text.as_str().unwrap();
        let words = ["With data in ordinary memory the GPU wins at ", "≥ "];
        holds(text, &words);
        // What would need one is not shown, and each operation has a page with its plots.
        let needs =
            "[...document.querySelectorAll('.scripted')].filter(e => e.checkVisibility()).length";
        assert_eq!(browser.eval(needs)?, 0);
        browser.open(&of_group(page, "matmul"))?;
        let drawn = "[...document.querySelectorAll('.plots img')].filter(image => image.checkVisibility() && image.naturalWidth > 0).length";
        assert!(browser.eval(drawn)?.as_u64() >= Some(3));
        Ok(())
    });
}

#[test]
#[ignore = "needs Chromium"]
fn a_permalink_opens_where_it_was_taken() {
    on_the_committed_page(|browser, page| {
        browser.open(&of_group(page, "matmul"))?;
        browser.eval("document.querySelector('#group-matmul .finding .permalink').click()")?;
        browser.drawn()?;
        let address = browser.eval("location.hash")?;
        holds(&address.to_string(), &["\"#finding-matmul-"]);
        browser.reload()?;
        browser.until("(r => r.top >= 0 && r.top < innerHeight)(document.querySelector(':target').getBoundingClientRect())")?;
        Ok(())
    });
}

//! The page on screens of several kinds: without scripts, with odd names, with timelines, and that of the
//! committed record.

use serde_json::json;

use crate::tests::browser::{of_group, on_the_committed_page, text, with_page};
use crate::tests::committed::{benchmark, measured, newest};
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
        holds(
            text,
            &[
                "With data in ordinary memory the GPU wins at ",
                "≥ ",
                "ordinary",
            ],
        );
        // What would need one is not shown, and each operation has a page with its plots.
        let needs =
            "[...document.querySelectorAll('.scripted')].filter(e => e.checkVisibility()).length";
        assert_eq!(browser.eval(needs)?, 0);
        browser.open(&of_group(page, "matmul"))?;
        let drawn = "[...document.querySelectorAll('.plots img')].filter(image => image.checkVisibility() && image.naturalWidth > 0).length";
        assert!(browser.eval(drawn)?.as_u64() >= Some(3));
        browser.call(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": false}),
        )?;
        Ok(())
    });
}

/// A group, an implementation and a GPU whose names are HTML.
#[test]
#[ignore = "needs Chromium"]
fn names_from_files_stay_text() {
    let mut results = measured(&["matmul"]);
    let gpu = &mut newest(&mut results).environment.gpu;
    gpu.as_mut().unwrap().name = "<script>alert(1)</script>".into();
    let mut odd = benchmark(&mut results, "matmul/cpu/best/64").clone();
    odd.group = "</script><img src=x onerror=alert(2)>".into();
    odd.implementation = "\"><b>".into();
    odd.id = format!("{}/cpu/{}/64", odd.group, odd.implementation);
    results.benchmarks.push(odd);
    with_page(results, |browser, _| {
        let elements = browser.eval("document.querySelectorAll('img, b b').length")?;
        assert_eq!(elements, 0);
        assert!(text(browser, "#groups")?.contains("</script><img src=x"));
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

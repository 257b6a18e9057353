//! Every run of every case on every backend that is present, the reference interpreter first; and the cases
//! themselves against plain Ruby. What was skipped is printed.

mod support;

use std::process::Command;
use support::{case_files, folder};

#[test]
fn cases_agree_with_ruby() {
    let oracle = folder().join("cases").join("oracle.rb");
    // Without RubyGems, so that nothing adds hints to messages.
    let version = Command::new("ruby").args(["--disable=gems", "-e", "print RUBY_VERSION"]).output();
    match version {
        // Messages of other versions differ.
        Ok(answer) if answer.stdout.starts_with(b"3.1.") => {}
        Ok(answer) => {
            println!(
                "skipped: this is Ruby {}, the cases are in the words of 3.1",
                String::from_utf8_lossy(&answer.stdout)
            );
            return;
        }
        Err(error) => {
            println!("skipped: no Ruby ({error})");
            return;
        }
    }
    let root = folder().join("cases");
    let files = case_files().into_iter().map(|f| f.strip_prefix(&root).expect("below the cases").to_owned());
    let answer = Command::new("ruby")
        .args(["--disable=gems".as_ref(), oracle.as_os_str()])
        .args(files)
        .current_dir(&root)
        .output()
        .expect("Ruby runs");
    let differences = String::from_utf8_lossy(&answer.stdout);
    let complaints = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "Ruby gives something else:\n{differences}{complaints}");
}

//! A word of the host's memory that the stream writes to, for who waits for little: to look at it takes no call of the driver's, and it is seen about a microsecond before the driver
//! would say that an event has passed.
//!
//! Here: [`Bell`], and [`Call`], one wait. Not here: what the work was that is waited for, and what becomes of it ([`super`]). A fault on the device is never heard: whoever hears nothing
//! for a while asks the driver, which knows.

use super::Stream;
use crate::backend::cuda::driver::Device;
use crate::backend::cuda::storage::Mailbox;
use once_cell::sync::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The memory is had by those who have waited so often: a program's first calls do without.
const OFTEN: u32 = 16;
/// Longer than a little launch takes, behind a few others.
const PATIENCE: Duration = Duration::from_micros(50);

/// See the module.
#[derive(Default)]
pub struct Bell {
    waits: AtomicU32,
    /// Numbers of the waits that there were, in the stream's order.
    rings: AtomicU32,
    word: OnceCell<Option<Mailbox>>,
    /// The device has no such thing.
    mute: AtomicBool,
}

/// A wait for a place in the stream.
pub struct Call<'a> {
    word: &'a Mailbox,
    number: u32,
}

impl Bell {
    /// Has the stream say when it comes here; None: it will not. One at a time rings, who adds to the stream.
    pub fn ring(&self, stream: &Stream, device: &Arc<Device>) -> Option<Call<'_>> {
        let seldom = self.word.get().is_none() && self.waits.fetch_add(1, Ordering::Relaxed) < OFTEN;
        if seldom || self.mute.load(Ordering::Relaxed) {
            return None;
        }
        let word = self.word.get_or_init(|| Mailbox::new(device, 1).ok()).as_ref()?;
        let number = self.rings.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if !word.tell(0, number, stream) {
            self.mute.store(true, Ordering::Relaxed);
            return None;
        }
        Some(Call { word, number })
    }
}

impl Call<'_> {
    /// Whether the stream has come there, for which it waits a while.
    pub fn is_heard(&self) -> bool {
        let began = Instant::now();
        loop {
            for _ in 0..64 {
                if is_at(self.word.told(0), self.number) {
                    return true;
                }
                std::hint::spin_loop();
            }
            if began.elapsed() > PATIENCE {
                return false;
            }
        }
    }
}

/// Whether the last number that was said is this one, or a later one. They begin anew after 2³²; as many are not waited for at a time.
fn is_at(said: u32, number: u32) -> bool {
    (said.wrapping_sub(number) as i32) >= 0
}

#[cfg(test)]
mod tests {
    use super::is_at;

    #[test]
    fn a_number_is_reached_by_itself_and_by_those_after_it_also_around_the_end() {
        assert!(is_at(5, 5) && is_at(6, 5) && !is_at(4, 5) && !is_at(0, 1));
        assert!(is_at(0, u32::MAX) && is_at(3, u32::MAX - 1) && !is_at(u32::MAX, 2));
    }
}

// The rows of noise by melflow.h from Rust: rows PRESET. Links the front end alone:
//   rustc rows.rs -L . -l static=melflow_frontend -l stdc++ -o rows
use std::ffi::{c_char, c_int, c_void, CStr, CString};

extern "C" {
    fn melflow_error() -> *const c_char;
    fn melflow_front_from_preset(name: *const c_char, rate: c_int, front: *mut *mut c_void) -> c_int;
    fn melflow_front_destroy(front: *mut c_void);
    fn melflow_front_columns(front: *const c_void) -> c_int;
    fn melflow_front_rows(front: *const c_void, count: i64) -> i64;
    fn melflow_compute(front: *const c_void, samples: *const f32, count: i64, rows: *mut f32, room: i64, made: *mut i64) -> c_int;
}

struct Front(*mut c_void);

impl Drop for Front {
    fn drop(&mut self) {
        unsafe { melflow_front_destroy(self.0) }
    }
}

fn check(status: c_int) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    Err(unsafe { CStr::from_ptr(melflow_error()) }.to_string_lossy().into_owned())
}

impl Front {
    fn new(preset: &str) -> Result<Front, String> {
        let name = CString::new(preset).map_err(|e| e.to_string())?;
        let mut handle = std::ptr::null_mut();
        check(unsafe { melflow_front_from_preset(name.as_ptr(), 0, &mut handle) })?;
        Ok(Front(handle))
    }
    fn columns(&self) -> usize {
        unsafe { melflow_front_columns(self.0) as usize }
    }
    fn rows(&self, samples: &[f32]) -> Result<Vec<f32>, String> {
        let count = samples.len() as i64;
        let room = unsafe { melflow_front_rows(self.0, count) };
        let mut rows = vec![0f32; room as usize * self.columns()];
        let mut made = 0;
        check(unsafe { melflow_compute(self.0, samples.as_ptr(), count, rows.as_mut_ptr(), room, &mut made) })?;
        rows.truncate(made as usize * self.columns());
        Ok(rows)
    }
}

fn main() -> Result<(), String> {
    let front = Front::new(&std::env::args().nth(1).ok_or("usage: rows PRESET")?)?;
    let mut seed: u32 = 1;
    let samples: Vec<f32> = (0..16000)
        .map(|_| {
            seed = seed.wrapping_mul(1103515245).wrapping_add(12345) & 0x7fffffff;
            (seed as f64 / (1u32 << 30) as f64 - 1.0) as f32
        })
        .collect();
    for row in front.rows(&samples)?.chunks(front.columns()) {
        println!("{:?}", row);
    }
    Ok(())
}

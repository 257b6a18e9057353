//! CUDA C++, NVRTC and the driver.

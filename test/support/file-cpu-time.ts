import { afterAll } from 'vitest'
import { processCpuMs } from './cpu-time.ts'

const before = processCpuMs()

// biome-ignore lint/correctness/noEmptyPattern: Vitest reads from it which fixtures are wanted.
afterAll(({}, file) => {
  file.meta.cpuMs = processCpuMs() - before
})

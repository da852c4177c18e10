/**
 * `node process-group.ts <file> <argument…>`: runs a Node program in its own process group, which Ctrl-C in a terminal does
 * not reach, so that the parent process decides when it stops.
 *
 * Forwards SIGTERM and the exit code. When the parent has exited, the program is stopped too.
 */

import { spawn } from 'node:child_process'

const PARENT_CHECK_MS = 250

const parent = process.ppid
// Before the program starts: an early signal must not end this process alone.
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, ignore)
process.on('SIGTERM', stop)
const child = spawn(process.execPath, process.argv.slice(2), {
  stdio: ['ignore', 'inherit', 'inherit'],
  detached: true,
})
const watch = setInterval(() => {
  if (process.ppid !== parent) stop()
}, PARENT_CHECK_MS)
child.once('exit', (code) => {
  clearInterval(watch)
  process.exitCode = code ?? 1
})

/** Once: a second signal would end the drain of the program early. */
function stop(): void {
  clearInterval(watch)
  process.off('SIGTERM', stop)
  process.on('SIGTERM', ignore)
  child.kill('SIGTERM')
}

function ignore(): void {}

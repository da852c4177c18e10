/**
 * `node own-group.ts <file> <argument…>`: runs a Node program in a process group of its own, which Ctrl-C in a terminal
 * does not reach, so that whoever started it decides when it stops.
 *
 * SIGTERM is handed on, the exit code handed back. When the starter is gone without a word, the program is stopped too.
 */

import { spawn } from 'node:child_process'

const PARENT_CHECK_MS = 250

const parent = process.ppid
// Before there is anything to stop: a signal that comes first must not end this process alone.
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

/** Once: a second signal would cut the drain of the program short. */
function stop(): void {
  clearInterval(watch)
  process.off('SIGTERM', stop)
  process.on('SIGTERM', ignore)
  child.kill('SIGTERM')
}

function ignore(): void {}

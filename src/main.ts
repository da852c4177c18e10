import { enableCompileCache } from 'node:module'
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'

// Name look-ups take a thread of libuv's pool each; with the usual four, slow DNS of one tenant would stall files and
// compression for everyone. Set before anything uses the pool, hence the import below.
process.env.UV_THREADPOOL_SIZE ??= '16'

// A native driver that is not there.
delete process.env.NODE_PG_FORCE_NATIVE
// Of the addresses of a host each has this long to answer: Node's 250 ms give up on any host that is farther away.
setDefaultAutoSelectFamilyAttemptTimeout(2_500)

/** Beside the sources, since others may write to the system's temporary directory. NODE_COMPILE_CACHE names another place. */
const COMPILE_CACHE = join(import.meta.dirname, '../node_modules/.cache/patchbay')
const DAEMON_FLAGS = ['--memory-saver-mode', '--heap-growing-percent=80']

// A daemon shares its host with the customer's programs: it returns memory, and lets garbage grow to less than what is
// alive. Measured over 300 000 records: 170 MB instead of 450 MB, at the same speed.
if (process.argv[2] === 'daemon') for (const flag of DAEMON_FLAGS) setFlagsFromString(flag)
// A third of the CPU time of a start is stripping types and compiling: the code of the last start is used again. Has no
// effect where the directory cannot be written.
enableCompileCache(process.env.NODE_COMPILE_CACHE ?? COMPILE_CACHE)
const { handleOutputErrors, isServing, runCommand } = await import('./cli/commands/run-command.ts')
handleOutputErrors(process.argv[2])
process.exitCode = await runCommand(process.argv.slice(2), process.env)
// What a command prints is waited for, but not what a process that served has written to a pipe without a reader.
if (isServing(process.argv[2])) process.exit()

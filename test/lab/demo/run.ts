/**
 * `npm run demo`: Patchbay end to end on this machine alone.
 *
 * Reads a local emulation of GitHub on a cron trigger, delivers the records to a receiver that verifies every signature, and
 * changes the trigger over each protocol. GitHub sends webhooks, which a receiver gets as events although it fails, is turned
 * off and changes its secret. Then a daemon that stores a long list into PostgreSQL is killed in the middle, and
 * another one resumes. Ends by itself; exits with 1 when a check fails.
 */

import { join } from 'node:path'
import { type RunningProduct, removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { audit } from './audit.ts'
import { demonstrateDaemons } from './daemons.ts'
import { startGitHub } from './github.ts'
import { describeRun, patchOverEveryProtocol } from './patches.ts'
import { ReceivedRuns } from './received-runs.ts'
import { sendForgeries, startVerifyingReceiver, type VerifiedDelivery } from './receiver.ts'
import { counted, printFact, printLine, printSection, printTable, printTitle, timeOf } from './report.ts'
import { DemoAborted, DemoSession } from './session.ts'
import { createSetup } from './setup.ts'
import { demonstrateWebhooks } from './webhooks.ts'

const LIMIT_MS = 170_000
/** Lines of Patchbay's output that are printed when it exits unexpectedly. */
const LAST_OUTPUT_LINES = 12
const ROOT = join(import.meta.dirname, '../../..')

/** Runs every step. @returns the names of failed checks */
async function runDemo(session: DemoSession): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack()
  const received = new ReceivedRuns()
  const step = (title: string): void => {
    session.throwIfAborted()
    printSection(title)
  }

  step('A local GitHub')
  const github = stack.use(await startGitHub())
  printFact('emulation', github.url)
  for (const [name, issues] of github.repositories) printFact(name, counted(issues, 'issue'))

  step('Patchbay in its own process')
  const product = await startPatchbay(session, stack)

  step('From the shipped definition to a trigger')
  let printRow: (delivery: VerifiedDelivery) => void = () => {}
  const receiver = await startVerifyingReceiver((delivery) => {
    if (delivery.event.startsWith('record:')) return
    const run = received.add(delivery)
    if (run.number === 1) printRow(delivery)
    if (delivery.event === 'failed') session.abort(`run ${run.number} failed: ${delivery.problem}`)
    session.notify()
  })
  stack.use(receiver)
  const setup = await createSetup({ session, product, github, receiver })

  step('The first run at the receiver')
  printRow = deliveryTable()
  const [first] = await session.waitFor('the first run', () => received.completedFrom(setup.trigger.created_at, 1))
  if (first !== undefined) printLine(`run ${first.number} ${describeRun(first)}`)

  step('Forged deliveries are rejected')
  const genuine = await session.waitFor('a delivery to forge', () => receiver.sample())
  const forgeriesSent = await sendForgeries(receiver.urlOf(genuine.path), genuine)

  const ineffective = await patchOverEveryProtocol({ session, product, setup, received })

  step('Totals')
  const unbalanced = await audit({ session, setup, github, receiver, received, forgeriesSent })

  const lost = await demonstrateWebhooks({ session, stack, product, github, setup, step })
  const incomplete = await demonstrateDaemons({ session, stack, product, github, setup, step })
  return [...ineffective, ...unbalanced, ...lost, ...incomplete]
}

/** Starts the product on a new data directory; disposing the stack stops and deletes both. */
async function startPatchbay(session: DemoSession, stack: AsyncDisposableStack): Promise<RunningProduct> {
  const begun = performance.now()
  const dataDir = temporaryDataDir()
  stack.defer(() => removeDataDir(dataDir))
  const product = await startProduct({
    dataDir,
    environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' },
    command: [process.execPath, join(import.meta.dirname, 'process-group.ts'), join(ROOT, 'src/main.ts'), 'start'],
  })
  let isStopping = false
  product.child.once('exit', (code) => {
    if (isStopping && code === 0) return
    for (const line of product.output().trimEnd().split('\n').slice(-LAST_OUTPUT_LINES)) printFact('Patchbay', line)
    session.abort(`Patchbay exited with ${code}`)
  })
  stack.defer(async () => {
    isStopping = true
    await product.stop()
  })
  printFact('API and worker', `${product.url}   healthy after ${((performance.now() - begun) / 1000).toFixed(1)} s`)
  printFact('database', 'embedded PostgreSQL in a new directory')
  return product
}

function deliveryTable(): (delivery: VerifiedDelivery) => void {
  const row = printTable([
    { title: 'time', width: 8, align: 'left' },
    { title: 'event', width: 12, align: 'left' },
    { title: 'resource', width: 12, align: 'left' },
    { title: 'sequence', width: 8, align: 'right' },
    { title: 'records', width: 7, align: 'right' },
    { title: 'signature', width: 9, align: 'left' },
  ])
  return ({ event, resource = '', sequence = '', recordIds }) =>
    row([timeOf(Date.now()), event, resource, `${sequence}`, `${recordIds?.length ?? ''}`, 'ok'])
}

/** Removes the configuration of another installation from the environment. */
function clearConfiguration(): void {
  for (const name of Object.keys(process.env))
    if (name === 'DATABASE_URL' || name.startsWith('PATCHBAY_')) delete process.env[name]
}

async function main(): Promise<number> {
  using session = new DemoSession(LIMIT_MS)
  const begun = performance.now()
  printTitle('Patchbay: issues of a GitHub account, on a cron trigger, to a signed webhook')
  try {
    const problems = await runDemo(session)
    const seconds = ((performance.now() - begun) / 1000).toFixed(0)
    const result = problems.length === 0 ? 'Every check passed' : `Failed checks: ${problems.join(', ')}`
    printTitle(`${result}; ended after ${seconds} s.\n`)
    return problems.length === 0 ? 0 : 1
  } catch (error) {
    // A call that failed because the demo was aborted (Patchbay exited, Ctrl-C) is not the cause.
    const ended = error instanceof DemoAborted ? error : session.aborted
    const text = ended?.message ?? (error instanceof Error ? (error.stack ?? error.message) : String(error))
    printTitle(`Ended early: ${text}\n`)
    return ended?.exitCode ?? 1
  }
}

clearConfiguration()
process.exitCode = await main()

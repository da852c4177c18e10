/**
 * `npm run demo`: Patchbay end to end, with nothing but this machine.
 *
 * A local emulation of GitHub is read on a cron trigger, the records arrive at a receiver that checks every signature,
 * and the trigger is changed over each protocol. Then a daemon stores a long list into PostgreSQL and is killed in the
 * middle; another one goes on. Ends by itself; exits with 1 when anything does not add up.
 */

import { join } from 'node:path'
import { type RunningProduct, removeDataDir, startProduct, temporaryDataDir } from '../support/product.ts'
import { audit } from './audit.ts'
import { demonstrateDaemons } from './daemons.ts'
import { startGitHub } from './github.ts'
import { describeRun, patchOverEveryProtocol } from './patches.ts'
import { ReceivedRuns } from './received-runs.ts'
import { sendForgeries, startVerifyingReceiver, type VerifiedDelivery } from './receiver.ts'
import { counted, printFact, printLine, printSection, printTable, printTitle, timeOf } from './report.ts'
import { DemoAborted, DemoSession } from './session.ts'
import { createSetup } from './setup.ts'

const LIMIT_MS = 170_000
/** Lines that Patchbay wrote last, for when it ends by itself. */
const LAST_OUTPUT_LINES = 12
const ROOT = join(import.meta.dirname, '../..')

/** Tells the whole story; returns the names of what does not add up. */
async function runDemo(story: DemoSession): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack()
  const journal = new ReceivedRuns()
  const step = (title: string): void => {
    story.throwIfAborted()
    printSection(title)
  }

  step('A local GitHub')
  const github = stack.use(await startGitHub())
  printFact('emulation', github.url)
  for (const [name, issues] of github.repositories) printFact(name, counted(issues, 'issue'))

  step('Patchbay, as a process of its own')
  const product = await startPatchbay(story, stack)

  step('From the shipped definition to a trigger')
  let printRow: (delivery: VerifiedDelivery) => void = () => {}
  const receiver = await startVerifyingReceiver((delivery) => {
    const run = journal.add(delivery)
    if (run.number === 1) printRow(delivery)
    if (delivery.event === 'failed') story.abort(`run ${run.number} failed: ${delivery.problem}`)
    story.notify()
  })
  stack.use(receiver)
  const chain = await createSetup({ story, product, github, receiver })

  step('The first run, as its receiver verifies it')
  printRow = deliveryTable()
  const [first] = await story.waitFor('the first run', () => journal.completedFrom(chain.trigger.created_at, 1))
  if (first !== undefined) printLine(`run ${first.number} ${describeRun(first)}`)

  step('What the receiver does not believe')
  const genuine = await story.waitFor('a delivery to forge', () => receiver.sample())
  const forgeriesSent = await sendForgeries(receiver.urlOf(genuine.path), genuine)

  const ineffective = await patchOverEveryProtocol({ session: story, product, setup: chain, received: journal })

  step('What it adds up to')
  const unbalanced = await audit({ session: story, setup: chain, github, receiver, received: journal, forgeriesSent })

  const incomplete = await demonstrateDaemons({ session: story, stack, product, github, setup: chain, step })
  return [...ineffective, ...unbalanced, ...incomplete]
}

/** Starts the product on a data directory of its own; both are gone when the stack is disposed. */
async function startPatchbay(story: DemoSession, stack: AsyncDisposableStack): Promise<RunningProduct> {
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
    story.abort(`Patchbay exited with ${code}`)
  })
  stack.defer(async () => {
    isStopping = true
    await product.stop()
  })
  printFact('API and worker', `${product.url}   healthy after ${((performance.now() - begun) / 1000).toFixed(1)} s`)
  printFact('database', 'embedded PostgreSQL in a directory of its own')
  return product
}

function deliveryTable(): (delivery: VerifiedDelivery) => void {
  const row = printTable([
    { title: 'time', width: 8, side: 'left' },
    { title: 'event', width: 12, side: 'left' },
    { title: 'resource', width: 12, side: 'left' },
    { title: 'sequence', width: 8, side: 'right' },
    { title: 'records', width: 7, side: 'right' },
    { title: 'signature', width: 9, side: 'left' },
  ])
  return ({ event, resource = '', sequence = '', recordIds }) =>
    row([timeOf(Date.now()), event, resource, `${sequence}`, `${recordIds?.length ?? ''}`, 'ok'])
}

/** What another installation is configured with does not concern this one. */
function clearConfiguration(): void {
  for (const name of Object.keys(process.env))
    if (name === 'DATABASE_URL' || name.startsWith('PATCHBAY_')) delete process.env[name]
}

async function main(): Promise<number> {
  using story = new DemoSession(LIMIT_MS)
  const begun = performance.now()
  printTitle('Patchbay: issues of a GitHub account, on a cron trigger, to a signed webhook')
  try {
    const problems = await runDemo(story)
    const seconds = ((performance.now() - begun) / 1000).toFixed(0)
    const verdict = problems.length === 0 ? 'Everything adds up' : `These do not add up: ${problems.join(', ')}`
    printTitle(`${verdict}; ended by itself after ${seconds} s.\n`)
    return problems.length === 0 ? 0 : 1
  } catch (error) {
    // A call that failed because the story ended (Patchbay is gone, somebody pressed Ctrl-C) is not what went wrong.
    const ended = error instanceof DemoAborted ? error : story.aborted
    const text = ended?.message ?? (error instanceof Error ? (error.stack ?? error.message) : String(error))
    printTitle(`Ended early: ${text}\n`)
    return ended?.exitCode ?? 1
  }
}

clearConfiguration()
process.exitCode = await main()

import { inspect } from 'node:util'
import { afterAll } from 'vitest'
import type { Clock } from '../../src/base/index.ts'
import { query } from '../../src/database/database.ts'
import { Database, type DatabaseTarget } from '../../src/database/index.ts'
import { caseCount, runSeed } from './case-count.ts'
import { holdStatements } from './held-statements.ts'

/** What an operation runs on. Before each statement, request and sleep it waits until it is its turn. */
export interface Lane {
  readonly database: Database
  /** Its sleeps end when the operation has its next turn, and take the time of `Interleavings.clock`. */
  readonly clock: Clock
  /** A step of the operation that is no statement, such as a request to a third party: awaited before and after it. */
  step(label: string): Promise<void>
}

/** One of the operations that run beside each other. A Failure is a result like any other. */
export type Operation = (lane: Lane) => Promise<unknown>

/** Two operations on one state. */
export interface Race<State> {
  /** Makes what the operations work on, which is new each time. */
  arrange(): Promise<State>
  readonly operations: (state: State) => readonly [Operation, Operation]
  /** Throws when what the operations leave is wrong. Called when both have ended, with how each did. */
  check(state: State, results: readonly PromiseSettledResult<unknown>[]): Promise<void>
}

/** An order of steps after which the check failed. */
interface Violation {
  /** The steps in the order in which they happened. */
  readonly steps: readonly string[]
  readonly error: unknown
}

/** Random orders of a race in CI, and with TEST_CASES=all: two operations of 20 statements have a thousand. */
const ORDERS_CI = 30
const ORDERS_MAX = 80
/** Looks at waiting connections of the database before it is given up that an operation goes on. */
const LOOKS_MAX = 20_000
const LANES = [0, 1] as const
type LaneIndex = (typeof LANES)[number]
/** Which lane goes on: after so many steps of the named ones the rest of each, in this order. */
type Schedule = readonly { readonly lane: LaneIndex; readonly steps: number }[]

/**
 * Runs two operations in many orders of their steps. A step lasts from one statement, request or sleep of an operation to the
 * next one; between two steps of one operation any number of the other's may happen. What waits for a row lock goes on when the
 * other operation lets go of it.
 *
 * Explored are all orders in which the first operation is interrupted once, at each of its steps, by the whole other one, and
 * of those in which the other one is interrupted, or both are, some random ones.
 */
export function interleavings(target: DatabaseTarget, clock: Clock & { advance(ms: number): void }) {
  const lanes = LANES.map((index) => new LaneControl(target, index, clock))
  const observer = new Database({ target, poolMax: 1 })
  afterAll(async () => {
    for (const lane of lanes) await lane[Symbol.asyncDispose]()
    await observer[Symbol.asyncDispose]()
  })

  async function run<State>(
    race: Race<State>,
    schedule: Schedule,
  ): Promise<{ lengths: number[]; violation?: Violation }> {
    const state = await race.arrange()
    const steps: string[] = []
    const results = await new Run(lanes, observer, steps).execute(race.operations(state), schedule)
    const lengths = LANES.map((index) => steps.filter((step) => step.startsWith(`${index} `)).length)
    try {
      await race.check(state, results)
      return { lengths }
    } catch (error) {
      return { lengths, violation: { steps, error } }
    }
  }

  return {
    /** Fails with the first order of the steps after which the check fails, and how many there are. */
    async expectAlways<State>(race: Race<State>): Promise<void> {
      const violations: Violation[] = []
      let explored = 0
      const lengthsMax = [0, 0]
      const explore = async (schedule: Schedule) => {
        const { lengths, violation } = await run(race, schedule)
        explored++
        if (violation !== undefined) violations.push(violation)
        for (const lane of LANES) lengthsMax[lane] = Math.max(lengthsMax[lane] ?? 0, lengths[lane] ?? 0)
        return lengths
      }
      for (let steps = 0; ; steps++) {
        const [length = 0] = await explore(interruptedOnce(0, steps))
        if (length <= steps) break
      }
      for (const schedule of sampled(lengthsMax)) await explore(schedule)
      const [first] = violations
      if (first !== undefined) throw new Error(describeViolation(first, violations.length, explored))
    },
  }
}

/** An operation some steps, the other one to its end, the rest. */
function interruptedOnce(lane: LaneIndex, steps: number): Schedule {
  return [
    { lane, steps },
    { lane: other(lane), steps: Number.POSITIVE_INFINITY },
  ]
}

/** An operation some steps, the other one some, the first one to its end, the other one to its end. */
function interruptedTwice(lane: LaneIndex, lengths: readonly number[]): readonly Schedule[] {
  return range(1, lengths[lane] ?? 0).flatMap((steps) =>
    range(1, lengths[other(lane)] ?? 0).map(
      (later): Schedule => [
        { lane, steps },
        { lane: other(lane), steps: later },
        { lane, steps: Number.POSITIVE_INFINITY },
      ],
    ),
  )
}

/** Random ones of the orders in which the second operation is interrupted once, or both are. */
function sampled(lengths: readonly number[]): readonly Schedule[] {
  const once = range(1, lengths[1] ?? 0).map((steps) => interruptedOnce(1, steps))
  const all = [...once, ...LANES.flatMap((lane) => interruptedTwice(lane, lengths))]
  const random = randomFrom(runSeed())
  const count = caseCount(2, ORDERS_CI, ORDERS_MAX)
  return all
    .map((schedule) => ({ schedule, order: random() }))
    .sort((one, two) => one.order - two.order)
    .slice(0, count)
    .map(({ schedule }) => schedule)
}

function range(from: number, below: number): readonly number[] {
  return Array.from({ length: Math.max(0, below - from) }, (_, index) => from + index)
}

function other(lane: LaneIndex): LaneIndex {
  return lane === 0 ? 1 : 0
}

/** Numbers between 0 and 1 that follow from the seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** One execution of two operations. */
class Run {
  readonly #lanes: readonly LaneControl[]
  readonly #observer: Database
  readonly #steps: string[]

  constructor(lanes: readonly LaneControl[], observer: Database, steps: string[]) {
    this.#lanes = lanes
    this.#observer = observer
    this.#steps = steps
  }

  async execute(
    operations: readonly Operation[],
    schedule: Schedule,
  ): Promise<readonly PromiseSettledResult<unknown>[]> {
    const ended = Promise.allSettled(
      this.#lanes.map((lane, index) => lane.begin(operations[index] ?? (async () => {}))),
    )
    for (const { lane, steps } of [...schedule, ...LANES.map((lane) => ({ lane, steps: Number.POSITIVE_INFINITY }))])
      for (let done = 0; done < steps; done++) if (!(await this.#advance(lane))) break
    while (await this.#advanceAny()) {}
    return await ended
  }

  /** Lets a lane make a step. @returns whether it did: it has not ended, and waits for no lock or sleep of its own */
  async #advance(index: LaneIndex): Promise<boolean> {
    const lane = this.#lane(index)
    await this.#settle()
    const isAsleep = lane.isAsleep && !this.#lane(other(index)).hasEnded
    if (!lane.isReady || isAsleep) return false
    this.#steps.push(`${index} ${lane.release()}`)
    await this.#settle()
    return true
  }

  async #advanceAny(): Promise<boolean> {
    await this.#settle()
    const ready = LANES.filter((index) => this.#lane(index).isReady)
    const [index] = ready.filter((each) => !this.#lane(each).isAsleep).concat(ready)
    if (index === undefined) {
      if (LANES.every((each) => this.#lane(each).hasEnded)) return false
      // Both wait for a lock: the server ends the deadlock.
      await new Promise((resolve) => setTimeout(resolve, 20))
      return true
    }
    this.#steps.push(`${index} ${this.#lane(index).release()}`)
    return true
  }

  /** Waits until each lane has ended, is at a step, or waits for a lock. */
  async #settle(): Promise<void> {
    for (let looks = 0; looks < LOOKS_MAX; looks++) {
      if (LANES.every((index) => this.#lane(index).isSettled)) return
      await new Promise((resolve) => setImmediate(resolve))
      if (looks % 50 !== 49) continue
      const blocked = await this.#blocked()
      if (LANES.every((index) => this.#lane(index).isSettled || blocked.has(this.#lane(index).name))) return
    }
    throw new Error(`an operation does not go on: ${this.#steps.join('\n')}`)
  }

  async #blocked(): Promise<ReadonlySet<string>> {
    const sql = `select application_name as name from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`
    const rows = await query<{ readonly name: string }>(this.#observer.pool, sql)
    return new Set(rows.map(({ name }) => name))
  }

  #lane(index: LaneIndex): LaneControl {
    const lane = this.#lanes[index]
    if (lane === undefined) throw new Error(`no lane ${index}`)
    return lane
  }
}

interface Waiting {
  readonly label: string
  readonly isSleep: boolean
  readonly go: () => void
}

/** The connections of one operation, whose statements wait for their turn. */
class LaneControl implements AsyncDisposable {
  readonly name: string
  readonly #database: Database
  readonly #clock: Clock & { advance(ms: number): void }
  /** `undefined` between runs: statements pass. */
  #waiting: Waiting[] | undefined
  #hasEnded = true

  constructor(target: DatabaseTarget, index: LaneIndex, clock: Clock & { advance(ms: number): void }) {
    this.name = `lane-${index}`
    this.#clock = clock
    this.#database = new Database({ target, applicationName: this.name })
    holdStatements(this.#database, (label) => this.#arrive(label))
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  get isReady(): boolean {
    return !this.#hasEnded && (this.#waiting?.length ?? 0) > 0
  }

  get isAsleep(): boolean {
    return this.isReady && this.#waiting?.[0]?.isSleep === true
  }

  get isSettled(): boolean {
    return this.#hasEnded || this.isReady
  }

  async begin(operation: Operation): Promise<unknown> {
    this.#waiting = []
    this.#hasEnded = false
    const clock: Clock = {
      now: () => this.#clock.now(),
      monotonicMs: () => this.#clock.monotonicMs(),
      sleep: async (ms) => {
        await this.#arrive('sleep', true)
        this.#clock.advance(ms)
      },
    }
    try {
      await this.#arrive('begin')
      return await operation({ database: this.#database, clock, step: (label) => this.#arrive(label) })
    } finally {
      this.#hasEnded = true
      for (const { go } of this.#waiting ?? []) go()
      this.#waiting = undefined
    }
  }

  /** Lets the first waiting step happen; returns what it is. */
  release(): string {
    const first = this.#waiting?.shift()
    if (first === undefined) throw new Error(`${this.name} has no step`)
    first.go()
    return first.label
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#database[Symbol.asyncDispose]()
  }

  async #arrive(label: string, isSleep = false): Promise<void> {
    const waiting = this.#waiting
    if (waiting === undefined) return
    await new Promise<void>((go) => waiting.push({ label, isSleep, go }))
  }
}

function describeViolation({ steps, error }: Violation, count: number, explored: number): string {
  const why = error instanceof Error ? error.message : inspect(error)
  return [`${count} of ${explored} orders of the steps break the promise. The first one:`, ...steps, why].join('\n')
}

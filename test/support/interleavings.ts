import { inspect } from 'node:util'
import { afterAll } from 'vitest'
import type { Clock } from '../../src/foundation/base/index.ts'
import { Database, type DatabaseTarget, query } from '../../src/foundation/database/index.ts'
import { caseCount, runSeed } from './case-count.ts'
import { holdStatements } from './held-statements.ts'
import { ANYTHING, boundary, isConflict, REQUEST, StatementEffects, type StepEffects } from './step-effects.ts'

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

/** Random orders of a race in CI, and with TEST_CASES=all, each with a result of its own: of 30 at random 20 have. */
const ORDERS_CI = 20
const ORDERS_MAX = 80
/** Looks at waiting connections of the database before it is given up that an operation goes on. */
const LOOKS_MAX = 20_000
const LANES = [0, 1] as const
type LaneIndex = (typeof LANES)[number]
/** Which lane goes on: after so many steps of the named ones the rest of each, in this order. */
type Schedule = readonly { readonly lane: LaneIndex; readonly steps: number }[]

/** A step that happened. */
interface Step {
  readonly lane: LaneIndex
  readonly label: string
  readonly effects: StepEffects
}

/**
 * Runs two operations in many orders of their steps. A step lasts from one statement, request or sleep of an operation to the
 * next one; between two steps of one operation any number of the other's may happen. What waits for a row lock goes on when the
 * other operation lets go of it.
 *
 * Explored are all orders in which the first operation is interrupted once, at each of its steps, by the whole other one, and
 * of those in which the other one is interrupted, or both are, some random ones. An order that follows from an explored one by
 * exchanging neighbours that commute, such as statements on other tables, has its result, and is left out.
 */
export function interleavings(target: DatabaseTarget, clock: Clock & { advance(ms: number): void }) {
  const lanes = LANES.map((index) => new LaneControl(target, index, clock))
  const observer = new Database({ target, poolMax: 1 })
  afterAll(async () => {
    for (const lane of lanes) await lane[Symbol.asyncDispose]()
    await observer[Symbol.asyncDispose]()
  })

  let statements: Promise<StatementEffects> | undefined

  async function run<State>(race: Race<State>, schedule: Schedule): Promise<{ steps: Step[]; violation?: Violation }> {
    statements ??= StatementEffects.ofDatabase(observer.pool)
    const state = await race.arrange()
    const steps: Step[] = []
    const results = await new Run(lanes, observer, await statements, steps).execute(race.operations(state), schedule)
    try {
      await race.check(state, results)
      return { steps }
    } catch (error) {
      return { steps, violation: { steps: steps.map(({ lane, label }) => `${lane} ${label}`), error } }
    }
  }

  return {
    /** Fails with the first order of the steps after which the check fails, and how many there are. */
    async expectAlways<State>(race: Race<State>): Promise<void> {
      const violations: Violation[] = []
      const explored: Explored[] = []
      const lengthsMax = [0, 0]
      const explore = async (schedule: Schedule): Promise<boolean> => {
        if (explored.some((each) => each.hasResultOf(schedule))) return false
        const { steps, violation } = await run(race, schedule)
        explored.push(new Explored(steps))
        if (violation !== undefined) violations.push(violation)
        for (const lane of LANES) lengthsMax[lane] = Math.max(lengthsMax[lane] ?? 0, lengthOf(steps, lane))
        return true
      }
      for (let steps = 0; steps <= (lengthsMax[0] || 1); steps++) await explore(interruptedOnce(0, steps))
      let left = caseCount(2, ORDERS_CI, ORDERS_MAX)
      for (const schedule of shuffled(lengthsMax)) if (left > 0 && (await explore(schedule))) left--
      const [first] = violations
      if (first !== undefined) throw new Error(describeViolation(first, violations.length, explored.length))
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

/** The orders in which the second operation is interrupted once, or both are, at random. */
function shuffled(lengths: readonly number[]): readonly Schedule[] {
  const once = range(1, lengths[1] ?? 0).map((steps) => interruptedOnce(1, steps))
  const all = [...once, ...LANES.flatMap((lane) => interruptedTwice(lane, lengths))]
  const random = randomFrom(runSeed())
  return all
    .map((schedule) => ({ schedule, order: random() }))
    .sort((one, two) => one.order - two.order)
    .map(({ schedule }) => schedule)
}

function lengthOf(steps: readonly Step[], lane: LaneIndex): number {
  return steps.filter((step) => step.lane === lane).length
}

/** The steps of an order that was tried. */
class Explored {
  /** Positions of the steps of each lane in the order. */
  readonly #positions: readonly (readonly number[])[]
  /** Pairs of steps of different lanes that cannot be exchanged, the earlier one first. */
  readonly #conflicts: readonly (readonly [number, number])[]

  constructor(steps: readonly Step[]) {
    this.#positions = LANES.map((lane) => [...steps.keys()].filter((index) => steps[index]?.lane === lane))
    this.#conflicts = steps.flatMap((one, first) =>
      [...steps.keys()]
        .slice(first + 1)
        .filter((second) => isConflictOf(one, steps[second]))
        .map((second) => [first, second] as const),
    )
  }

  /** Whether the schedule brings all steps that conflict into the order that they had here. */
  hasResultOf(schedule: Schedule): boolean {
    const rank = new Map<number, number>()
    const next = LANES.map(() => 0)
    for (const { lane, steps } of [...schedule, ...rest()]) {
      const from = next[lane] ?? 0
      const taken = this.#positions[lane]?.slice(from, from + steps) ?? []
      for (const position of taken) rank.set(position, rank.size)
      next[lane] = from + taken.length
    }
    return this.#conflicts.every(([first, second]) => (rank.get(first) ?? 0) < (rank.get(second) ?? 0))
  }
}

function isConflictOf(one: Step, other: Step | undefined): boolean {
  return other !== undefined && one.lane !== other.lane && isConflict(one.effects, other.effects)
}

/** What is left of each operation. */
function rest(): Schedule {
  return LANES.map((lane) => ({ lane, steps: Number.POSITIVE_INFINITY }))
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
  readonly #statements: StatementEffects
  readonly #steps: Step[]
  /** Tables that each operation has changed so far. */
  readonly #written = LANES.map(() => new Set<string>())

  constructor(lanes: readonly LaneControl[], observer: Database, statements: StatementEffects, steps: Step[]) {
    this.#lanes = lanes
    this.#observer = observer
    this.#statements = statements
    this.#steps = steps
  }

  async execute(
    operations: readonly Operation[],
    schedule: Schedule,
  ): Promise<readonly PromiseSettledResult<unknown>[]> {
    const ended = Promise.allSettled(
      this.#lanes.map((lane, index) => lane.begin(operations[index] ?? (async () => {}))),
    )
    for (const { lane, steps } of [...schedule, ...rest()])
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
    this.#release(index)
    await this.#settle()
    return true
  }

  #release(index: LaneIndex): void {
    const { kind, label } = this.#lane(index).release()
    this.#steps.push({ lane: index, label: label.slice(0, LABEL_MAX), effects: this.#effectsOf(index, kind, label) })
  }

  #effectsOf(index: LaneIndex, kind: Waiting['kind'], label: string): StepEffects {
    const written = this.#written[index] ?? new Set()
    if (kind === 'sleep') return ANYTHING
    if (kind === 'request') return REQUEST
    if (kind === 'begin' || TRANSACTION_EDGE.test(label)) return boundary(new Set(written))
    const effects = this.#statements.effectsOf(label)
    for (const table of effects.written) written.add(table)
    return effects
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
    this.#release(index)
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
    throw new Error(`an operation does not go on: ${this.#steps.map(({ label }) => label).join('\n')}`)
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

const LABEL_MAX = 120
const TRANSACTION_EDGE = /^(?:begin|commit|rollback)\b(?! to)/i

interface Waiting {
  readonly kind: 'begin' | 'statement' | 'request' | 'sleep'
  readonly label: string
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
    holdStatements(this.#database, (sql) => this.#arrive('statement', sql))
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  get isReady(): boolean {
    return !this.#hasEnded && (this.#waiting?.length ?? 0) > 0
  }

  get isAsleep(): boolean {
    return this.isReady && this.#waiting?.[0]?.kind === 'sleep'
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
        await this.#arrive('sleep')
        this.#clock.advance(ms)
      },
    }
    try {
      await this.#arrive('begin')
      return await operation({ database: this.#database, clock, step: (label) => this.#arrive('request', label) })
    } finally {
      this.#hasEnded = true
      for (const { go } of this.#waiting ?? []) go()
      this.#waiting = undefined
    }
  }

  /** Lets the first waiting step happen; returns what it is. */
  release(): Waiting {
    const first = this.#waiting?.shift()
    if (first === undefined) throw new Error(`${this.name} has no step`)
    first.go()
    return first
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#database[Symbol.asyncDispose]()
  }

  async #arrive(kind: Waiting['kind'], label: string = kind): Promise<void> {
    const waiting = this.#waiting
    if (waiting === undefined) return
    await new Promise<void>((go) => waiting.push({ kind, label, go }))
  }
}

function describeViolation({ steps, error }: Violation, count: number, explored: number): string {
  const why = error instanceof Error ? error.message : inspect(error)
  return [`${count} of ${explored} orders of the steps break the promise. The first one:`, ...steps, why].join('\n')
}

import type { Db } from '../../src/foundation/database/index.ts'
import { query } from '../../src/foundation/database/index.ts'

/** What a step of an operation may read and change, or more than that: steps without a conflict commute. */
export interface StepEffects {
  /** Requests to a third party; statements that begin and end, between which an operation may look at what it did; the rest. */
  readonly kind: 'request' | 'boundary' | 'statement' | 'anything'
  readonly touched: ReadonlySet<string>
  readonly written: ReadonlySet<string>
}

const NONE: ReadonlySet<string> = new Set()
export const REQUEST: StepEffects = { kind: 'request', touched: NONE, written: NONE }
export const ANYTHING: StepEffects = { kind: 'anything', touched: NONE, written: NONE }

/** The beginning or end of an operation or transaction. @param written tables whose changes others see from here on */
export function boundary(written: ReadonlySet<string>): StepEffects {
  return { kind: 'boundary', touched: written, written }
}

/** Whether two steps of different operations may have another result in the other order. */
export function isConflict(one: StepEffects, other: StepEffects): boolean {
  if (one.kind === 'anything' || other.kind === 'anything') return true
  if (one.kind === 'request' || other.kind === 'request') return one.kind !== 'statement' && other.kind !== 'statement'
  return meets(one.written, other.touched) || meets(other.written, one.touched)
}

function meets(some: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  for (const each of some) if (others.has(each)) return true
  return false
}

/** Locks count as writes: who comes second waits. */
const WRITES = /\b(?:insert|update|delete|truncate|merge|lock|share)\b/i
/** Effects that are not on rows of the tables that the statement names. */
const ELSEWHERE = /\b(?:advisory|notify|nextval|setval|rollback to)\b/i

/** Tells from its text what a statement may read and change, by table. */
export class StatementEffects {
  readonly #tables: ReadonlySet<string>
  /** Tables that rows of a table refer to, whose rows a change locks; tables whose rows a deletion may reach. */
  readonly #parents: ReadonlyMap<string, readonly string[]>
  readonly #children: ReadonlyMap<string, readonly string[]>

  private constructor(
    tables: readonly string[],
    references: readonly { readonly child: string; readonly parent: string }[],
  ) {
    this.#tables = new Set(tables)
    this.#parents = grouped(references.map(({ child, parent }) => [child, parent]))
    this.#children = grouped(references.map(({ child, parent }) => [parent, child]))
  }

  static async ofDatabase(db: Db): Promise<StatementEffects> {
    const tables = await query<{ readonly name: string }>(
      db,
      "select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')",
    )
    const references = await query<{ readonly child: string; readonly parent: string }>(
      db,
      `select distinct child.relname as child, parent.relname as parent from pg_constraint
       join pg_class child on child.oid = conrelid join pg_class parent on parent.oid = confrelid where contype = 'f'`,
    )
    return new StatementEffects(
      tables.map(({ name }) => name),
      references,
    )
  }

  effectsOf(sql: string): StepEffects {
    if (ELSEWHERE.test(sql)) return ANYTHING
    const named = new Set(sql.match(/\w+/g)?.filter((word) => this.#tables.has(word)))
    if (!WRITES.test(sql)) return { kind: 'statement', touched: named, written: NONE }
    const written = /\b(?:delete|truncate)\b/i.test(sql) ? this.#withChildren(named) : named
    const parents = [...written].flatMap((table) => this.#parents.get(table) ?? [])
    return { kind: 'statement', touched: new Set([...written, ...parents]), written }
  }

  #withChildren(tables: ReadonlySet<string>): ReadonlySet<string> {
    const reached = new Set(tables)
    for (const table of reached) for (const child of this.#children.get(table) ?? []) reached.add(child)
    return reached
  }
}

function grouped(pairs: readonly (readonly [string, string])[]): ReadonlyMap<string, readonly string[]> {
  const groups = Map.groupBy(pairs, ([key]) => key)
  return new Map([...groups].map(([key, members]) => [key, members.map(([, value]) => value)]))
}

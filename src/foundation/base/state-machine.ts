/** The status of something before it is created. */
const NEW = 'new'

/** A state machine: `table[from][cause]` is the status that a cause leads to; absent: it is impossible from there. */
export type TransitionTable<Status extends string, Cause extends string> = Readonly<
  Record<Status | typeof NEW, Partial<Readonly<Record<Cause, Status>>>>
>

/** The transitions of a cause, one per status that it may start from. */
export function transitionsOf<Status extends string, Cause extends string>(
  table: TransitionTable<Status, Cause>,
  cause: Cause,
): readonly { readonly from: Status; readonly to: Status }[] {
  return Object.keys(table)
    .filter((from): from is Status => from !== NEW)
    .flatMap((from) => {
      const to = table[from][cause]
      return to === undefined ? [] : [{ from, to }]
    })
}

/** What a method does that has one of the usual names, in definitions and in unified models. */
interface MethodTraits {
  readonly kind: 'read' | 'write'
  /** It names a record by its id. */
  readonly hasId: boolean
  /** Its body is a record, or a part of one. */
  readonly sendsRecord: boolean
}

/** Methods whose name says what they do; what others do is said where they are declared, such as by `read_only`. */
const METHODS = new Map<string, MethodTraits>(
  Object.entries({
    list: { kind: 'read', hasId: false, sendsRecord: false },
    get: { kind: 'read', hasId: true, sendsRecord: false },
    create: { kind: 'write', hasId: false, sendsRecord: true },
    update: { kind: 'write', hasId: true, sendsRecord: true },
    delete: { kind: 'write', hasId: true, sendsRecord: false },
  }),
)

/** `list` and `get`. */
export const READING_METHODS: readonly string[] = namesOf('read')
/** `create`, `update` and `delete`. */
export const WRITING_METHODS: readonly string[] = namesOf('write')

function namesOf(kind: MethodTraits['kind']): readonly string[] {
  return [...METHODS].filter(([, traits]) => traits.kind === kind).map(([name]) => name)
}

/** Whether a method reads or writes by its name; `custom`: the name does not tell. */
export function methodKind(name: string): MethodTraits['kind'] | 'custom' {
  return METHODS.get(name)?.kind ?? 'custom'
}

/** Whether a method reads by its name. */
export function isReadingMethod(name: string): boolean {
  return methodKind(name) === 'read'
}

/** Whether a method names a record by its id: `get`, `update`, `delete`. */
export function hasRecordId(name: string): boolean {
  return METHODS.get(name)?.hasId ?? false
}

/** Whether the body of a method is a record: `create`, `update`. */
export function sendsRecord(name: string): boolean {
  return METHODS.get(name)?.sendsRecord ?? false
}

/** Whether a method is for one record by its name: all the usual ones but `list`. */
export function isForOneRecord(name: string): boolean {
  const traits = METHODS.get(name)
  return traits !== undefined && (traits.hasId || traits.sendsRecord)
}

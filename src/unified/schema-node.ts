/** A compiled JSON Schema of the subset that models use. */
export type SchemaNode = ScalarNode | ObjectNode | ListNode

interface AnyNode {
  /** Left out of records unless the caller asks for it. */
  readonly isSensitive: boolean
  readonly isReadOnly: boolean
}

/** A text, number or truth value. */
export interface ScalarNode extends AnyNode {
  readonly kind: 'string' | 'number' | 'integer' | 'boolean'
  readonly enum: readonly string[] | undefined
  readonly format: ScalarFormat | undefined
  readonly lengthMin: number | undefined
  readonly lengthMax: number | undefined
}

export type ScalarFormat = 'date' | 'date-time' | 'decimal' | 'email' | 'uri' | 'country'

/** An object; of a reference, `{id, name}`. */
export interface ObjectNode extends AnyNode {
  readonly kind: 'object'
  readonly properties: ReadonlyMap<string, SchemaNode>
  /** Fields that a create must have. */
  readonly required: ReadonlySet<string>
  /** `<model>/<resource>` that its id belongs to. */
  readonly reference: string | undefined
  /** Any key is allowed: an object without properties. */
  readonly isOpen: boolean
}

export interface ListNode extends AnyNode {
  readonly kind: 'array'
  readonly items: SchemaNode
}

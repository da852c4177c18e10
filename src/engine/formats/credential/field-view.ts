import type { Json, JsonObject } from '../../../foundation/json/index.ts'
import { type Field, isSecretField } from './fields.ts'

/** A choice of a select. */
export interface FormOption {
  readonly value: string
  readonly label: string
  /** A second line, for example an e-mail address. */
  readonly subText?: string | undefined
}

/** What a form shows of a field. Texts are those of the definition, not escaped. */
export interface FormField {
  readonly name: string
  readonly label: string
  readonly type: Field['type']
  readonly isRequired: boolean
  /** Its value is never shown again, also not after a rejected submit. */
  readonly isSecret: boolean
  /** The customer is not asked: a hidden field, or one whose value the application supplied. */
  readonly isHidden: boolean
  readonly format: Field['format']
  /** RE2 syntax, for the whole value; the server is the judge. */
  readonly pattern: string | undefined
  readonly patternMessage: string | undefined
  readonly prefix: string | undefined
  readonly suffix: string | undefined
  readonly placeholder: string | undefined
  readonly helpText: string | undefined
  readonly documentationLink: string | undefined
  readonly options: readonly FormOption[]
  /** Of a file: extensions such as `.pem`. */
  readonly accept: readonly string[]
  readonly min: number | undefined
  readonly max: number | undefined
  /** Value before the customer has entered one; of the field's JSON type. */
  readonly initialValue: Json | undefined
  /** Present for a select whose options are read from the third party, page by page. */
  readonly remote: RemoteOptions | undefined
  readonly visibleWhen: { readonly field: string; readonly equals: readonly Json[] } | undefined
}

/** How the options of a select are read. */
export interface RemoteOptions {
  /** Fields that must have a value first; the options depend on their values. */
  readonly dependsOn: readonly string[]
  /** The third party searches. */
  readonly isSearchable: boolean
  /** Shown while a field that this one depends on has no value. */
  readonly disabledText: string | undefined
  /** Shown when there is nothing to choose. */
  readonly emptyText: string | undefined
}

/** A field of any form. */
type ShownField = Field & {
  readonly dependsOn?: readonly string[]
  readonly remote?: Omit<RemoteOptions, 'dependsOn'> | undefined
}

/** The fields in the order in which a form shows them. @param supplied values that the application supplied, by name */
export function listFormFields(fields: readonly ShownField[], supplied: JsonObject = {}): FormField[] {
  return fields
    .toSorted((one, other) => (one.order ?? 0) - (other.order ?? 0))
    .map((field) => formFieldOf(field, Object.hasOwn(supplied, field.name)))
}

function formFieldOf(field: ShownField, isSupplied: boolean): FormField {
  const isSecret = isSecretField(field)
  const { name, type, visible_when: condition } = field
  return {
    name,
    label: field.label ?? name,
    type,
    isRequired: field.required,
    isSecret,
    isHidden: type === 'hidden' || isSupplied,
    format: field.format,
    pattern: field.pattern,
    patternMessage: field.pattern_message,
    prefix: field.prefix,
    suffix: field.suffix,
    placeholder: field.placeholder,
    helpText: field.help_text,
    documentationLink: field.documentation_link,
    options: (field.options ?? []).map(({ value, label }) => ({ value, label: label ?? value })),
    accept: field.accept ?? [],
    min: field.min,
    max: field.max,
    initialValue: isSecret ? undefined : field.default,
    remote: field.remote && {
      dependsOn: field.dependsOn ?? [],
      isSearchable: field.remote.isSearchable,
      disabledText: field.remote.disabledText,
      emptyText: field.remote.emptyText,
    },
    visibleWhen: condition && {
      field: condition.field,
      equals: Array.isArray(condition.equals) ? condition.equals : [condition.equals],
    },
  }
}

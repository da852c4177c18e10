import type { Violation } from '../../foundation/base/index.ts'

/** Path of a form's values in findings. */
export const FORM_PATH = 'fields'

/** A finding with the name of the form's field alone. */
export function withoutFormPath(violation: Violation): Violation {
  return { ...violation, field: violation.field.replace(/^(?:fields|context)\./, '') }
}

import { type ControlArgument, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from './tool-input.ts'

/** Page size and cursor. */
export const LIST_CONTROLS: readonly ControlArgument[] = [
  {
    control: 'limit',
    schema: {
      type: 'integer',
      minimum: 1,
      maximum: LIST_LIMIT_MAX,
      default: LIST_LIMIT_DEFAULT,
      description: `Records of a page; it counts for the first page, later ones keep it.`,
    },
  },
  {
    control: 'cursor',
    schema: { type: 'string', description: 'The next_cursor of the page before; absent for the first page.' },
  },
]

/** Projection of the records. */
export const FIELDS_CONTROL: ControlArgument = {
  control: 'fields',
  schema: {
    type: 'array',
    // More than any record has; each of them costs time.
    maxItems: 100,
    items: { type: 'string', maxLength: 200 },
    description: 'Fields of the records to return, as dotted paths; fewer fields save tokens. Absent: all.',
  },
}

/** Shows the request of a write. */
export const DRY_RUN_CONTROL: ControlArgument = {
  control: 'dry_run',
  schema: { type: 'boolean', default: false, description: 'True shows the request without sending it.' },
}

/** The choice among several accounts; none for one. @param labelOf the name of an account's integration */
export function accountControl(
  accountIds: readonly string[],
  labelOf: (accountId: string) => string,
): readonly ControlArgument[] {
  if (accountIds.length < 2) return []
  const named = accountIds.map((id) => `${id} (${labelOf(id)})`)
  const schema = { type: 'string', enum: [...accountIds], description: `The connected account: ${named.join(', ')}.` }
  return [{ control: 'account', schema, isRequired: true }]
}

import { createHash } from 'node:crypto'

/** Names that are tables and files as they are. Those of the store itself begin with its own word. */
const SAFE_NAME = /^(?!patchbay_)[a-z][a-z0-9_]{0,49}$/
/** Leaves room for the digest within the 63 bytes of a name in PostgreSQL. */
const READABLE_LENGTH_MAX = 40
const DIGEST_LENGTH = 8

/**
 * The table or folder of a resource: its name when that is lower case, else a readable form of it and a digest, so that
 * `crm/contacts` and `crm_contacts` stay apart.
 */
export function storageName(resource: string): string {
  if (SAFE_NAME.test(resource)) return resource
  const readable = resource
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .slice(0, READABLE_LENGTH_MAX)
  const digest = createHash('sha256').update(resource).digest('hex').slice(0, DIGEST_LENGTH)
  return `${readable.replace(/^(?![a-z])/, 'r_')}_${digest}`
}

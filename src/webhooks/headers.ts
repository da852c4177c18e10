/** The secrets of a webhook that are custom headers have this before the name. */
const SECRET_PREFIX = 'header:'

/** The custom headers among the secrets of a webhook, by lower-case name. */
export function headersFromSecrets(values: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(values).flatMap(([name, value]) =>
    name.startsWith(SECRET_PREFIX) ? [[name.slice(SECRET_PREFIX.length), value] as const] : [],
  )
  return Object.fromEntries(entries)
}

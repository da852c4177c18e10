/** Ends an exhaustive switch; reached only when a kind was added and a switch forgotten. */
export function assertNever(value: never): never {
  throw new Error(`unhandled case ${JSON.stringify(value)}`)
}

/** An error with a code, as JSONata's own have. */
export function argumentError(message: string): Error {
  return Object.assign(new Error(message), { code: 'ARGUMENT' })
}

/** The value as one of the choices; an error that lists them otherwise. */
export function oneOf<const T extends string>(choices: readonly T[], value: string): T {
  const found = choices.find((choice) => choice === value.toLowerCase())
  if (found === undefined) throw argumentError(`"${value.slice(0, 32)}" is not one of ${choices.join(', ')}`)
  return found
}

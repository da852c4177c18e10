/** How long a minute, an hour and a day of a provider last here, in milliseconds. */
export interface ProviderClock {
  readonly minute: number
  readonly hour: number
  readonly day: number
}

/** A minute is a second; an hour and a day are shortened further, so that ten minutes hold a week. */
export const COMPRESSED: ProviderClock = { minute: 1_000, hour: 20_000, day: 80_000 }

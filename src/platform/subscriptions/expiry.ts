import { durationSeconds, type SubscriptionPlan } from '../../engine/definitions/index.ts'
import { Failure, parseTime, type Random } from '../../foundation/base/index.ts'
import { isJsonNumber, type Json, toDouble } from '../../foundation/json/index.ts'

/** A renewal is due this share of the life before its end. */
const RENEW_SHARE = 0.2
/** Renewals are earlier by up to this share of that time: jitter that spreads those of subscriptions created together. */
const EARLY_SHARE = 0.5
/** A renewal is due after at least this share of the life. */
const LIFE_SHARE_MIN = 0.5
/** Subscriptions that do not end are checked so often, where the definition can renew them. */
const CHECK_MS = 24 * 3_600_000
const CHECK_JITTER = 0.1

/** Unix times below are in seconds: in milliseconds they would be in 1973. */
const MILLISECONDS_MIN = 1e11

/**
 * Reads the end of a subscription: RFC 3339, Unix time in seconds or milliseconds, as number or text, or a duration such as
 * `30d` from now. `undefined` for no value: it does not end.
 *
 * @throws Failure EXPRESSION_FAILED for anything else
 */
export function readExpiry(value: Json | undefined, now: Date): Date | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const time =
    typeof value === 'string' ? timeOfText(value, now) : isJsonNumber(value) ? unixTime(Number(toDouble(value))) : NaN
  if (Number.isNaN(new Date(time).getTime()))
    throw new Failure('EXPRESSION_FAILED', 'webhook.subscription.expires: the value is no time and no duration')
  return new Date(time)
}

function timeOfText(text: string, now: Date): number {
  const seconds = durationSeconds(text)
  if (seconds !== undefined) return now.getTime() + seconds * 1_000
  return /^\d{1,16}(\.\d{1,9})?$/.test(text) ? unixTime(Number(text)) : parseTime(text)
}

function unixTime(value: number): number {
  return value < MILLISECONDS_MIN ? value * 1_000 : value
}

/**
 * Until the renewal of a subscription that was created or renewed now, in milliseconds; of one that does not end until the
 * next check. `undefined`: never.
 */
export function renewalDelayMs(
  { renewBeforeMs, actions }: Pick<SubscriptionPlan, 'renewBeforeMs' | 'actions'>,
  expiresAt: Date | undefined,
  now: Date,
  random: Random,
): number | undefined {
  if (expiresAt === undefined) return actions.renew === undefined ? undefined : CHECK_MS * (1 - CHECK_JITTER * random())
  const lifeMs = Math.max(0, expiresAt.getTime() - now.getTime())
  const beforeMs = (renewBeforeMs ?? lifeMs * RENEW_SHARE) * (1 + EARLY_SHARE * random())
  return Math.max(lifeMs - beforeMs, lifeMs * LIFE_SHARE_MIN)
}

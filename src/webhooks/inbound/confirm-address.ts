import type { WebhookPlan } from '../../engine/definitions/index.ts'
import { Failure } from '../../foundation/base/index.ts'
import type { HttpClient } from '../../foundation/egress/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'

/** The third party waits for the answer meanwhile. */
const VISIT_MS_MAX = 5_000
const RESPONSE_BYTES_MAX = 64 * 1024
const RETRY_AFTER_SECONDS = 30

/**
 * Visits the address that a handshake names, as AWS SNS asks to confirm a subscription: one GET without credentials, to a host
 * that the definition allows, over HTTPS at its usual port, without redirects.
 *
 * @returns what happened, for the trace
 * @throws Failure UPSTREAM_UNREACHABLE when the address does not answer with success: the third party sends its request again
 */
export async function confirmAddress(
  http: Pick<HttpClient, 'send'>,
  webhook: Pick<WebhookPlan, 'isVerificationHost'>,
  address: string,
): Promise<JsonObject> {
  const url = URL.parse(address)
  // Its port is empty: the URL parser leaves out 443.
  if (url?.protocol !== 'https:' || url.port !== '' || !webhook.isVerificationHost(url.hostname.toLowerCase()))
    return { problem: 'the address is not one of verification_hosts over HTTPS at port 443, and was not visited' }
  const { status } = await send(http, url)
  if (status < 200 || status > 299) throw notConfirmed(url, `answered ${status}`)
  return { host: url.host, status }
}

async function send(http: Pick<HttpClient, 'send'>, url: URL) {
  const request = { method: 'GET', headers: {}, timeoutMs: VISIT_MS_MAX, maxResponseBytes: RESPONSE_BYTES_MAX }
  try {
    return await http.send({ ...request, url: url.href })
  } catch (error) {
    if (error instanceof Failure) throw notConfirmed(url, 'did not answer')
    throw error
  }
}

function notConfirmed({ host }: URL, what: string): Failure {
  const message = `${host}, which the handshake asked to be visited, ${what}`
  return new Failure('UPSTREAM_UNREACHABLE', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
}

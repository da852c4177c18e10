import { EVENT_BYTES_DEFAULT, type WebhookTarget } from '../../src/webhooks/outbound/index.ts'
import { newSigningSecret } from '../../src/webhooks/outbound/signing.ts'

/** A webhook at the URL with all options at their defaults. */
export function webhookTarget(url: string, rest: Partial<WebhookTarget> = {}): WebhookTarget {
  return {
    webhookId: 'w',
    environmentId: 'e',
    url,
    secrets: [newSigningSecret()],
    envelope: 'standard',
    headers: {},
    compatibility: 'none',
    maxEventBytes: EVENT_BYTES_DEFAULT,
    ...rest,
  }
}

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { buildDeliveryRequest, type DeliveryRequest } from '../../../src/webhooks/outbound/request.ts'
import { newSigningSecret } from '../../../src/webhooks/outbound/signing.ts'
import { webhookTarget } from '../../support/webhook-target.ts'

/** A delivery, the secret that its receiver knows, and whether that must accept it. */
interface VerifierCase {
  readonly name: string
  readonly secret: string
  readonly request: DeliveryRequest
  readonly isGenuine: boolean
}

/** Programs in `webhooks/outbound/` that verify with the standard library of their language. */
const VERIFIERS = [
  { command: process.env.PYTHON ?? '/usr/bin/python3', script: 'verify.py' },
  { command: 'ruby', script: 'verify.rb' },
  { command: 'php', script: 'verify.php' },
] as const

/**
 * Lets receivers in other languages verify deliveries and forgeries. A language whose interpreter is missing is a failure.
 *
 * @returns whether all of them accepted exactly the genuine ones
 */
export function testForeignReceivers(): boolean {
  const cases = verifierCases()
  const expected = cases.map(({ isGenuine }) => isGenuine)
  const official = cases.map(({ secret, request }) => verifyOfficially(secret, request))
  const answers = new Map([
    ['standardwebhooks (npm)', official],
    ...VERIFIERS.map((each) => [each.script, ask(each, cases)] as const),
  ])
  for (const [verifier, answer] of answers) {
    const wrong = cases.filter((_, index) => answer[index] !== expected[index]).map(({ name }) => name)
    console.log(`${verifier}: ${cases.length - wrong.length} of ${cases.length} deliveries ${wrong.join(', ')}`)
  }
  return [...answers.values()].every((answer) => JSON.stringify(answer) === JSON.stringify(expected))
}

function verifierCases(): readonly VerifierCase[] {
  const [secret, previous] = [newSigningSecret(), newSigningSecret()]
  const now = Math.floor(Date.now() / 1000)
  const payload = { name: 'Zoë 🎈', amount: 1.5, text: 'line\nbreak' }
  const event = { id: '019a0000-0000-7000-8000-000000000001', type: 'record:created', payload, createdAt: new Date() }
  const made = (secrets: readonly string[], timestamp = now, envelope: 'standard' | 'cloudevents' = 'standard') =>
    buildDeliveryRequest(webhookTarget('https://a.example/', { secrets, envelope }), event, timestamp)
  const genuine = made([secret])
  const withHeader = (name: string, value: string) => ({ ...genuine, headers: { ...genuine.headers, [name]: value } })
  const withByte = { ...genuine, body: Buffer.concat([genuine.body, Buffer.from(' ')]) }
  return [
    { name: 'a delivery', secret, request: genuine, isGenuine: true },
    { name: 'a CloudEvent', secret, request: made([secret], now, 'cloudevents'), isGenuine: true },
    { name: 'after a rotation, the new secret', secret, request: made([secret, previous]), isGenuine: true },
    {
      name: 'after a rotation, the previous one',
      secret: previous,
      request: made([secret, previous]),
      isGenuine: true,
    },
    { name: 'another secret', secret: newSigningSecret(), request: genuine, isGenuine: false },
    { name: 'one byte more', secret, request: withByte, isGenuine: false },
    { name: 'another id', secret, request: withHeader('webhook-id', 'other'), isGenuine: false },
    { name: 'another time', secret, request: withHeader('webhook-timestamp', String(now - 1)), isGenuine: false },
    { name: 'a delivery of an hour ago', secret, request: made([secret], now - 3_600), isGenuine: false },
    { name: 'no signature', secret, request: withHeader('webhook-signature', ''), isGenuine: false },
  ]
}

function verifyOfficially(secret: string, { headers, body }: DeliveryRequest): boolean {
  try {
    new Webhook(secret).verify(Buffer.from(body).toString(), { ...headers })
    return true
  } catch {
    return false
  }
}

function ask({ command, script }: (typeof VERIFIERS)[number], cases: readonly VerifierCase[]): readonly unknown[] {
  const lines = cases.map(({ secret, request }) =>
    JSON.stringify({ secret, headers: request.headers, body: Buffer.from(request.body).toString('base64') }),
  )
  const { stdout, stderr, error } = spawnSync(command, [join(import.meta.dirname, 'webhooks', script)], {
    input: `${lines.join('\n')}\n`,
    encoding: 'utf8',
  })
  if (error !== undefined) console.error(`${command}: ${error.message}`)
  if (stderr) console.error(stderr)
  return (stdout ?? '')
    .trim()
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
}

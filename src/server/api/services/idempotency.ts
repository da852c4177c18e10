import { createHash } from 'node:crypto'
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf'
import { Failure } from '../../../foundation/base/index.ts'
import type { Db, Tx } from '../../../foundation/database/index.ts'
import { canonicalJson, type Json, parseJson } from '../../../foundation/json/index.ts'
import {
  findIdempotencyKey,
  insertIdempotencyKey,
  SEALED_ANSWERS,
  storeIdempotentResponse,
} from '../../../platform/tenancy/index.ts'
import { encodeJson, readJson } from '../messages/codec.ts'
import { noteAnswer } from '../pipeline/audit.ts'
import type { IdempotencyDeps } from './deps.ts'

/** The field that every repeatable request has. */
const KEY_FIELD = 'request_id'

/**
 * Idempotency key: runs `work` in one transaction, and once per `request_id`. A repetition gets the stored first answer,
 * although the resource may have changed since.
 *
 * Key, answer and effect commit together, so a crash leaves all or nothing; an error leaves no key. Of concurrent
 * repetitions one runs and the others wait for it. Answers are stored encrypted because they may show a secret, and with
 * them the digest of the request: in plain text it would allow a reader of the table to guess a password in it. Keys
 * are deleted after 24 hours. Without `request_id` this is only the transaction.
 *
 * @param ownerId owner of the key: the environment, or the team for resources that the team owns
 * @throws Failure IDEMPOTENCY_KEY_REUSED when the key was used for another operation or another request
 */
export async function runIdempotent<Input extends DescMessage, Output extends DescMessage>(
  deps: IdempotencyDeps,
  ownerId: string,
  method: DescMethodUnary<Input, Output>,
  request: MessageShape<Input> & { readonly requestId?: string | undefined },
  work: (tx: Tx) => Promise<MessageInitShape<Output>>,
): Promise<MessageInitShape<Output>> {
  const { database, secrets } = deps
  if (request.requestId === undefined) return await database.transaction(noting(work))
  const requestId = uuidOf(request.requestId)
  const key = { ownerId, requestId, method: `${method.parent.typeName}/${method.name}` }
  const digest = digestOf(method.input, request)
  return await database.transaction(async (tx) => {
    if (!(await insertIdempotencyKey(tx, key)))
      return readJson(method.output, await firstAnswer(secrets, tx, key, digest))
    const answer = await noting(work)(tx)
    // JSON keeps numbers that a double would change.
    const bytes = Buffer.concat([digest, Buffer.from(JSON.stringify(encodeJson(method.output, answer)))])
    await storeIdempotentResponse(
      tx,
      ownerId,
      requestId,
      await secrets.encryptFor(tx, ownerId, SEALED_ANSWERS.associatedData(requestId), bytes),
    )
    return answer
  })
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

/** The key of a `request_id` as it is stored: a uuid in lower case, another text as one made of its hash. */
function uuidOf(requestId: string): string {
  const lower = requestId.toLowerCase()
  if (UUID.test(lower)) return lower
  const hex = createHash('sha256').update(requestId).digest('hex')
  return hex.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Notes what the work answers, for the entry of the audit log that its transaction commits. */
function noting<Answer>(work: (tx: Tx) => Promise<Answer>): (tx: Tx) => Promise<Answer> {
  return async (tx) => {
    const answer = await work(tx)
    noteAnswer(answer)
    return answer
  }
}

interface IdempotencyKey {
  readonly ownerId: string
  readonly requestId: string
  readonly method: string
}

/** Bytes of the digest before a stored answer. */
const DIGEST_BYTES = 32

async function firstAnswer(
  secrets: IdempotencyDeps['secrets'],
  tx: Db,
  { ownerId, requestId, method }: IdempotencyKey,
  digest: Uint8Array,
): Promise<Json> {
  const first = await findIdempotencyKey(tx, ownerId, requestId)
  if (first === undefined || first.sealedAnswer === null)
    throw new Error('an idempotency key was taken and has no answer')
  const stored = await secrets.decryptFor(tx, ownerId, SEALED_ANSWERS.associatedData(requestId), first.sealedAnswer)
  if (first.method !== method || !Buffer.from(stored.subarray(0, DIGEST_BYTES)).equals(digest))
    throw new Failure(
      'IDEMPOTENCY_KEY_REUSED',
      'this request_id was sent with a different request before: send a new one with every new request',
    )
  return parseJson(Buffer.from(stored.subarray(DIGEST_BYTES)).toString())
}

/** Digest of a request, the same on every protocol and for every order of keys. */
function digestOf(desc: DescMessage, request: MessageShape<DescMessage>): Uint8Array {
  const { [KEY_FIELD]: _, ...asked } = encodeJson(desc, request)
  return createHash('sha256').update(canonicalJson(asked)).digest()
}

import { create, type DescMessage, type DescMethod, type Message } from '@bufbuild/protobuf'
import { createContextValues, type HandlerContext } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { createSealer } from '../../../../src/foundation/base/index.ts'
import { callerKey } from '../../../../src/server/api/caller.ts'
import type { ServiceDefinition } from '../../../../src/server/api/operation.ts'
import { withSealedPages } from '../../../../src/server/api/services/sealed-pages.ts'
import { SERVICES } from '../../../support/operations.ts'

/** Of a gRPC client that was told nothing else. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024
const ITEMS = 40
const LARGE = 'x'.repeat(300 * 1024)

/** Every list of the contract that this service pages by itself. */
const LISTS = SERVICES.flatMap((service) =>
  service.methods
    .filter(({ name, methodKind, output }) => {
      const isPaged = output.fields.some((field) => field.name === 'next_page_token')
      return isPaged && methodKind === 'unary' && name !== 'ListFormOptions'
    })
    .map((method) => ({ name: method.name, service, method })),
)

const listOf = ({ output }: DescMethod) => output.fields.find((field) => field.fieldKind === 'list' && field.message)

/** An item whose first text is large, at whatever depth the message has one. */
function largeItem(message: DescMessage): Message {
  const texts = message.fields.filter((field) => field.scalar === 9 && field.fieldKind === 'scalar')
  const [text] = texts
  if (text !== undefined) return create(message, { [text.localName]: LARGE })
  const nested = message.fields.find((field) => field.fieldKind === 'message')
  if (nested?.message === undefined) throw new Error(`${message.typeName} has no text`)
  return create(message, { [nested.localName]: largeItem(nested.message) })
}

interface Request {
  pageSize: number
  pageToken: string
}

describe('a page of', () => {
  it.each(LISTS)('$name ends before it is too large for a client, and the next one goes on there', async (list) => {
    const { service, method } = list
    const field = listOf(method)
    if (field?.message === undefined) throw new Error('no list of messages')
    const item = largeItem(field.message)
    const handler = async ({ pageSize, pageToken }: Request) => {
      const first = Number(pageToken)
      const last = Math.min(ITEMS, first + (pageSize || ITEMS))
      return {
        [field.localName]: Array.from({ length: last - first }, () => item),
        nextPageToken: last === ITEMS ? '' : String(last),
      }
    }
    const definition = {
      desc: service,
      implementation: { [method.localName]: handler },
    } as unknown as ServiceDefinition
    const { implementation } = withSealedPages(createSealer(), onlyMethod(definition, method))
    const serve = Reflect.get(implementation, method.localName) as (
      request: Request,
      context: HandlerContext,
    ) => Promise<Record<string, unknown>>
    const values = createContextValues().set(callerKey, { teamId: 't', environmentId: 'e' } as never)
    let [token, count, pages] = ['', 0, 0]
    do {
      const answer = await serve({ pageSize: 0, pageToken: token }, { values } as HandlerContext)
      const items = answer[field.localName] as readonly Message[]
      expect(items.length * LARGE.length).toBeLessThan(ANSWER_BYTES_MAX)
      count += items.length
      pages += 1
      token = String(answer.nextPageToken)
    } while (token !== '')
    expect({ count, pages }).toEqual({ count: ITEMS, pages: Math.ceil(ITEMS / 10) })
  })

  it('covers all lists', () => {
    expect(LISTS.length).toBeGreaterThan(20)
  })
})

/** The service with one method, because only that one is implemented here. */
function onlyMethod(service: ServiceDefinition, method: DescMethod): ServiceDefinition {
  return { ...service, desc: { ...service.desc, methods: [method] } as ServiceDefinition['desc'] }
}

import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import {
  type IdPage,
  type ListPage,
  type ListPageRequest,
  listQuery,
  pageById,
} from '../../../foundation/database/index.ts'

/** Reads one page of a list. */
type ReadPage<Request, Row> = (request: Request, context: HandlerContext) => Promise<ListPage<Row>>

/** A unary method with a repeated field of items in its answer. */
interface ListMethod<Input extends DescMessage, Output extends DescMessage> {
  readonly input: Input
  readonly output: Output
}

/** What stands in the list of an answer. */
type ItemInit<Output extends DescMessage> = {
  readonly [Name in keyof MessageShape<Output>]-?: MessageShape<Output>[Name] extends readonly (infer Item)[]
    ? Item extends object
      ? ItemsOf<MessageInitShape<Output>, Name>
      : never
    : never
}[keyof MessageShape<Output>]

type ItemsOf<Init, Name> = Name extends keyof Init
  ? NonNullable<Init[Name]> extends readonly (infer Item)[]
    ? Item
    : never
  : never

/**
 * The handler of an operation that lists a resource: the rows of a page as messages, in the one list of the answer.
 *
 * @param show makes the message of a row
 */
export function listRpc<Input extends DescMessage, Output extends DescMessage, Row>(
  { output }: ListMethod<Input, Output>,
  show: (row: Row) => ItemInit<Output>,
  read: ReadPage<MessageShape<Input>, Row>,
): (request: MessageShape<Input>, context: HandlerContext) => Promise<MessageInitShape<Output>> {
  const list = output.fields.find(({ fieldKind, message }) => fieldKind === 'list' && message !== undefined)
  if (list === undefined) throw new Error(`${output.typeName} has no list of messages`)
  return async (request, context) => {
    const { items, nextPageToken } = await read(request, context)
    const answer: object = { [list.localName]: items.map((row) => show(row)), nextPageToken }
    return answer as MessageInitShape<Output>
  }
}

/** A list ordered by id, newest first. */
interface ListById<Request, Filter, Row> {
  /** The name by which its page tokens know it. */
  readonly list: string
  /** The environment, or the team for a list of its resources. */
  readonly owner: (context: HandlerContext) => string
  /** What restricts the rows, which a page token is bound to. */
  readonly filter?: (request: Request) => Filter
  readonly read: (range: Required<IdPage>, context: HandlerContext, filter: Filter) => Promise<readonly Row[]>
}

/** Reads pages of a list ordered by id. */
export function byId<
  Request extends ListPageRequest,
  Row extends { readonly id: string },
  Filter extends object = object,
>({ list, owner, filter, read }: ListById<Request, Filter, Row>): ReadPage<Request, Row> {
  return async (request, context) => {
    const given = filter?.(request) ?? ({} as Filter)
    return await pageById(listQuery(list, owner(context), given), request, (range) => read(range, context, given))
  }
}

/**
 * The API server: one port for gRPC, gRPC-Web, Connect and REST, the services of the contract, and HTTP routes beside them.
 *
 * `dispatch.ts` routes a request; `pipeline/run-operation.ts` has the steps of every one: deadline, authentication,
 * body, decoding, validation, handler, response. `services/` are Connect implementations with their converters beside them,
 * `rest/` and `rpc/` read and write messages, `http/` are the routes without a message, `messages/` is the codec,
 * `mcp-management/` offers the contract as tools. Business rules and SQL of resources never live here.
 */

export { BoundPort } from './listener/bound-port.ts'

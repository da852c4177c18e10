import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  ListFormOptionsRequest,
  ListFormOptionsResponseSchema,
} from '../../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import {
  FormFieldSchema,
  FormOptionSchema,
  FormOptionsSourceSchema,
  PostConnectFormSchema,
} from '../../../../gen/patchbay/v1/post_connect_form_pb.ts'
import type { FormField, FormOption } from '../../../engine/formats/index.ts'
import type { FormOptionsRequest, FormOptionsResult, PostConnectForm } from '../../../platform/links/index.ts'
import { valueFrom } from '../messages/struct.ts'
import { shapeOf } from './shape.ts'

/** The form of an account. */
export const postConnectFormToProto = shapeOf(PostConnectFormSchema).from<PostConnectForm>({
  integration: ({ integrationName }) => integrationName,
  fields: ({ fields }) => fields.map(formFieldToProto),
})

const formFieldToProto = shapeOf(FormFieldSchema).from<FormField>({
  required: ({ isRequired }) => isRequired,
  hidden: ({ isHidden }) => isHidden,
  optionsSource: ({ remote }) => remote && optionsSourceToProto(remote),
  visibleWhen: ({ visibleWhen }) => visibleWhen && { ...visibleWhen, equals: visibleWhen.equals.map(valueFrom) },
})

const optionsSourceToProto = shapeOf(FormOptionsSourceSchema).from<NonNullable<FormField['remote']>>({
  searchable: ({ isSearchable }) => isSearchable,
})

const formOptionToProto = shapeOf(FormOptionSchema).from<FormOption>()

/** The options that a request asks for. */
export function formOptionsRequestFromProto(request: ListFormOptionsRequest): FormOptionsRequest {
  const { field, search, pageToken, values } = request
  return { field, search, cursor: pageToken, values }
}

/** A page of options. @throws Failure of the source */
export function formOptionsToProto(result: FormOptionsResult): MessageInitShape<typeof ListFormOptionsResponseSchema> {
  switch (result.kind) {
    case 'page':
      return { options: result.options.map(formOptionToProto), nextPageToken: result.nextCursor ?? '' }
    case 'disabled':
      return { missingFields: [...result.missing] }
    case 'error':
      throw result.failure
  }
}

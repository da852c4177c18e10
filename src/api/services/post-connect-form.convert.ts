import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  ListFormOptionsRequest,
  ListFormOptionsResponseSchema,
} from '../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import type {
  FormFieldSchema,
  FormOptionSchema,
  PostConnectFormSchema,
} from '../../../gen/patchbay/v1/post_connect_form_pb.ts'
import type { FormField, FormOption } from '../../formats/index.ts'
import type { FormOptionsRequest, FormOptionsResult, PostConnectForm } from '../../link-sessions/index.ts'
import { structFrom, valueFrom } from '../messages/struct.ts'

/** The form of an account. */
export function postConnectFormToProto(form: PostConnectForm): MessageInitShape<typeof PostConnectFormSchema> {
  return {
    integratedAccountId: form.integratedAccountId,
    integration: form.integrationName,
    fields: form.fields.map(formFieldToProto),
    values: structFrom(form.values),
  }
}

function formFieldToProto(field: FormField): MessageInitShape<typeof FormFieldSchema> {
  const { min, max, initialValue, remote, visibleWhen } = field
  return {
    name: field.name,
    label: field.label,
    type: field.type,
    required: field.isRequired,
    hidden: field.isHidden,
    format: field.format ?? '',
    pattern: field.pattern ?? '',
    patternMessage: field.patternMessage ?? '',
    prefix: field.prefix ?? '',
    suffix: field.suffix ?? '',
    placeholder: field.placeholder ?? '',
    helpText: field.helpText ?? '',
    documentationLink: field.documentationLink ?? '',
    options: field.options.map(formOptionToProto),
    accept: [...field.accept],
    min: min === undefined ? undefined : valueFrom(min),
    max: max === undefined ? undefined : valueFrom(max),
    initialValue: initialValue === undefined ? undefined : valueFrom(initialValue),
    optionsSource: remote && {
      dependsOn: [...remote.dependsOn],
      searchable: remote.isSearchable,
      disabledText: remote.disabledText ?? '',
      emptyText: remote.emptyText ?? '',
    },
    visibleWhen: visibleWhen && { field: visibleWhen.field, equals: visibleWhen.equals.map(valueFrom) },
  }
}

function formOptionToProto({ value, label, subText }: FormOption): MessageInitShape<typeof FormOptionSchema> {
  return { value, label, subText: subText ?? '' }
}

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

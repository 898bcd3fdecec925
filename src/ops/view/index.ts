export { asStrided, detach, expand, narrow, permute, select, slice, squeeze, t, transpose, unsqueeze, view } from './views.ts'
export { clone, contiguous, flatten, reshape } from './reshape.ts'
export { gather, indexSelect, scatterAdd } from './indexing.ts'

// View operators, reshaping, and indexing by tensors.
export { clone, contiguous, flatten, reshape, squeeze, unsqueeze, view } from './reshape.ts'
export { permute, t, transpose } from './permute.ts'
export { asStrided, detach, expand } from './windows.ts'
export { narrow, select, slice } from './slicing.ts'
export { gather, indexSelect, scatterAdd } from './indexing.ts'

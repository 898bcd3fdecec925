// What vmap, the exporter to ONNX and autocast do with an operator, as data: the operator's declaration says which rule holds, the rooms that apply the rules have them by
// these names. `null` on an OpDef: it follows from how the operator computes (element by element, by reducing, in place, by a decomposition).

/** Why there is no rule. */
export interface NoRule {
  readonly none: string
}

/** How vmap computes an operator for a whole batch, whose dimension comes first. The rules are in src/func. */
export type BatchRule =
  /** Element by element: the examples broadcast. */
  | 'elementwise'
  /** All dimensions are alike but those that arguments name (`dim`, `dims`, `dim0`, …), which move by one. */
  | 'dimensions'
  /** A new size of one example. */
  | 'sizes'
  | 'permute'
  | 'squeeze'
  | 'cat'
  | 'argExtreme'
  | 'product'
  | 'linear'
  | 'convolution'
  | 'convolutionBackward'
  /** Any number of dimensions may stand in front of these arguments; the examples share the other tensors. */
  | { readonly leading: readonly string[] }
  /** The same with one dimension of the operator's own in front, into which the batch is folded. `rank` is that of the argument named first. */
  | { readonly folded: readonly string[]; readonly rank: number }
  | NoRule

/** How an operator becomes nodes of an ONNX model. The rules are in src/interop/onnx. */
export type OnnxRule =
  | 'argMax'
  | 'argMin'
  | 'avgPool'
  | 'cat'
  | 'convolution'
  | 'cumsum'
  | 'expand'
  | 'full'
  | 'gather'
  | 'gelu'
  | 'identity'
  | 'layerNorm'
  | 'linear'
  | 'logSoftmax'
  | 'maxPool'
  | 'permute'
  /** A view, as the elements at its positions. */
  | 'positions'
  | 'range'
  | 'relu'
  | 'reshape'
  | 'scatterAdd'
  | 'scatterValues'
  | 'select'
  | 'slice'
  | 'softmax'
  | 'topk'
  | 'transpose'
  /** One node for the whole operator, of these arguments. */
  | { readonly node: string; readonly inputs: readonly string[]; readonly attributes?: Readonly<Record<string, number>> }
  /** A write of the argument `part` to what the view operator of that name shows of `self`, or of zeros. The view's arguments are those from the third on. */
  | { readonly writeTo: 'self' | 'zeros'; readonly view: string; readonly part: string }
  | NoRule

/**
 * What autocast does with floating-point arguments: 'half' casts them to the dtype of autocast, 'float32' to float32, 'promote' to the widest one among them; 'as is' leaves
 * them, and where the operator is computed by others, these decide; 'untouched' leaves those of the others too, since PyTorch has one kernel for it. The classes are those of
 * PyTorch's autocast on the CPU.
 */
export type AutocastClass = 'half' | 'float32' | 'promote' | 'as is' | 'untouched'

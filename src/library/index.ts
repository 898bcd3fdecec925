// library/: operators that programs define. PyTorch's torch.library.
export { customOp, registerAutograd, registerFake } from './customOp.ts'
export type { CustomOp, CustomOpOptions, Forward } from './customOp.ts'
export { defineOp } from './defineOp.ts'
export type { DefineOpOptions, DefinedOp } from './defineOp.ts'
export { operatorNamespaces, publish } from './names.ts'
export type { OperatorNamespace } from './names.ts'
export { OpCheckError, opcheck } from './opcheck/opcheck.ts'
export type { OpCheckOptions, OpCheckReport, OpCheckTest } from './opcheck/opcheck.ts'

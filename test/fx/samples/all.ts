// Every sample.
import type { Sample, Variant } from './common.ts'
import { samples as s01 } from './s01_mymodule.ts'
import { samples as s02 } from './s02_mlp3.ts'
import { samples as s03 } from './s03_cnn.ts'
import { samples as s04 } from './s04_resnet18.ts'
import { samples as s05 } from './s05_transformer_block.ts'
import { samples as s06, variants as v06 } from './s06_gpt2.ts'
import { samples as s08 } from './s08_wrap_normalize.ts'
import { samples as s10 } from './s10_concrete_args.ts'
import { samples as s11 } from './s11_static_control_flow.ts'
import { samples as s12, variants as v12 } from './s12_nested_leaf.ts'
import { samples as s13, variants as v13 } from './s13_dict_tuple.ts'
import { samples as s14 } from './s14_cat_chunk_split.ts'
import { samples as s15, variants as v15 } from './s15_operators.ts'

export const samples: readonly Sample[] = [...s01, ...s02, ...s03, ...s04, ...s05, ...s06, ...s08, ...s10, ...s11, ...s12, ...s13, ...s14, ...s15]

/** Programs of which there is no golden. */
export const variants: readonly Variant[] = [...v06, ...v12, ...v13, ...v15]

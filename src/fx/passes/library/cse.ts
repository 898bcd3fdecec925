// Common subexpression elimination.
import type { Pass } from '../../../pipeline/index.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { CSEPass } from '../cse.ts'
import { asPass } from '../pass.ts'

/** Computes an operation that is computed twice from the same values only once. See {@link CSEPass}. */
export const cse: Pass<GraphModule> = asPass(new CSEPass(), 'cse')

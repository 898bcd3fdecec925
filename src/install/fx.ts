// The composition root of graphs: what `tensorfx/fx` needs before it works, and no tensors.
import { setStackText } from '../errors/index.ts'
import { installGraphText } from '../fx/graph/graphText.ts'
import { CodeGen } from '../fx/text/codegen.ts'
import { formatGraph, formatNode, formatTabular } from '../fx/text/format.ts'
import { programFirst } from '../provenance/index.ts'

/** Gives graphs their texts and code. */
export function installFx(): void {
  setStackText(programFirst)
  installGraphText({ newCodegen: () => new CodeGen(), isCodegen: (value) => value instanceof CodeGen, formatNode, formatGraph, formatTabular })
}

// A function is traced into a graph.
import { torch } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'

symbolicTrace((x) => torch.relu(x).add(1))

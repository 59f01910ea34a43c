"""The grammar of a trainer that prints a line of every kind, for tests that compare ways of reading a log."""

GRAMMAR = r"""
grammar: toy
version: 1
title: A trainer with a line for everything
upstream: https://example.org/toy
trainer: toy
layer: trainer
completion: reliable
rules:
  train_step:
    event: step
    literal: 'toy step '
    pairs:
      start: 'toy step (?P<step>\d++)(?:/(?P<planned_steps>\d++))?(?= \|)'
      cell: '|'
      key: '='
      keys: {loss: loss, time: step_time_s, mfu: mfu_ratio, tps: tokens_per_s, batch: global_batch_size, mem: peak_memory_bytes}
      unknown: other
    fields:
      step: {type: integer}
      planned_steps: {type: integer}
      loss: {type: number}
      step_time_s: {type: number}
      mfu_ratio: {type: number}
      tokens_per_s: {type: number}
      global_batch_size: {type: number}
      peak_memory_bytes: {type: number}
  second_line:
    event: step
    literal: 'toy norm '
    pattern: 'toy norm (?P<step>\d++): (?P<grad_norm>[\d.]++)'
    fields: {step: {type: integer}, grad_norm: {type: number}}
  third_line:
    event: step
    literal: 'toy lr '
    pattern: 'toy lr (?P<step>\d++): (?P<learning_rate>[\d.]++)'
    fields: {step: {type: integer}, learning_rate: {type: number}}
  beside:
    event: step
    companion: true
    literal: 'toy memory '
    pattern: 'toy memory (?P<peak_memory_allocated_bytes>\d++)'
    fields: {peak_memory_allocated_bytes: {type: number}}
  report:
    event: step
    companion: true
    literal: ['toy times', ' ..: ']
    block:
      open: 'toy times(?: of rank (?P<rank>\d++))?:$'
      row: '^ (?P<key>\w++) \.\.: (?P<value>[\d.]++)$'
      gap: 1
      keys: {data: data_time_s, copied: data_time_s, forward: forward_time_s}
      unknown: other
      requires: [forward_time_s]
    fields:
      rank: {type: integer}
      data_time_s: {type: number, printed_in: ms}
      forward_time_s: {type: number, printed_in: ms}
  row:
    event: step
    literal: ['STEP  ', '  toy ']
    table:
      header: '^STEP {2}.*LOSS'
      row: '^\d++ {2}toy .*'
      cell: '  '
      keys: {STEP: step, LOSS: loss, NORM: grad_norm}
      ignore: [TRAINER]
      unknown: other
    fields:
      step: {type: integer}
      loss: {type: number}
      grad_norm: {type: number}
  epoch_record:
    event: step
    literal: 'toy record '
    pattern: 'toy record epoch=(?P<epoch>[\d.]++) loss=(?P<loss>[\d.]++)'
    fields: {epoch: {type: number}, loss: {type: number}}
  counted:
    event: step
    redraw: true
    epochs_from: log
    literal: 'toy epoch '
    pattern: >-
      toy epoch (?P<epoch_number>\d++)(?:/(?P<epochs_planned>\d++))?[ ](?P<epoch_step>\d++)/(?P<epoch_steps>\d++)[ ](?P<loss>\S++)
    fields:
      epoch_number: {type: integer}
      epochs_planned: {type: integer}
      epoch_step: {type: integer}
      epoch_steps: {type: integer}
      loss: {type: number}
  passes:
    event: step
    epochs_from: log
    literal: 'toy pass '
    pattern: 'toy pass (?P<epoch_number>\d++) (?P<epoch_step>\d++)/(?P<epoch_steps>\d++) (?P<loss>\S++)'
    fields:
      epoch_number: {type: integer}
      epoch_step: {type: integer}
      epoch_steps: {type: integer}
      loss: {type: number}
  turn:
    event: step
    literal: 'toy turn '
    pattern: 'toy turn (?P<step>\d++) in (?P<epoch_number>\d++), (?P<epoch_step>\d++) (?P<loss>\S++)'
    fields: {step: {type: integer}, epoch_number: {type: integer}, epoch_step: {type: integer}, loss: {type: number}}
  lap:
    event: step
    literal: 'toy lap '
    pattern: 'toy lap (?P<epoch_number>\d++), (?P<epoch_step>\d++) (?P<loss>\S++)'
    fields: {epoch_number: {type: integer}, epoch_step: {type: integer}, loss: {type: number}}
  room:
    event: header
    literal: 'toy room '
    pattern: 'toy room (?:of (?P<step>\d++): )?(?P<memory_allocated_bytes>\d++)(?: on (?P<rank>\d++))?'
    fields: {step: {type: integer}, memory_allocated_bytes: {type: number}, rank: {type: integer}}
  greeting:
    event: header
    literal: 'toy begins'
    pattern: 'toy begins'
  going:
    event: progress
    literal: 'toy going '
    pattern: 'toy going (?P<epoch_number>\d++)'
    fields: {epoch_number: {type: integer}}
  laps:
    event: progress
    literal: 'toy laps of '
    pattern: 'toy laps of (?P<epoch_steps>\d++)'
    fields: {epoch_steps: {type: integer}}
  first_pass:
    event: progress
    literal: 'toy pass 0 '
    pattern: 'toy pass 0 '
  frame:
    event: step
    redraw: true
    literal: 'toy frame '
    pattern: 'toy frame (?P<step>\d++)/(?P<planned_steps>\d++) loss=(?P<loss>[\d.]++)'
    fields: {step: {type: integer}, planned_steps: {type: integer}, loss: {type: number}}
  bar:
    event: progress
    literal: 'toy bar '
    pattern: 'toy bar (?P<step>\d++)/(?P<planned_steps>\d++)'
    fields: {step: {type: integer}, planned_steps: {type: integer}}
  evaluation:
    event: eval
    literal: 'toy eval '
    pattern: 'toy eval (?P<step>\d++)?: (?P<val_loss>[\d.]++|nan)(?: in (?P<eval_duration_s>[\d.]++))?(?: of (?P<epoch>[\d.]++))?'
    fields: {step: {type: integer}, val_loss: {type: number}, eval_duration_s: {type: number}, epoch: {type: number}}
  scored:
    event: eval
    literal: 'toy scored '
    pattern: 'toy scored (?P<epoch_number>\d++)(?:/(?P<planned_steps>\d++))?: (?P<val_loss>\S++)'
    fields: {epoch_number: {type: integer}, planned_steps: {type: integer}, val_loss: {type: number}}
  kept:
    event: checkpoint
    literal: 'toy kept'
    pattern: 'toy kept(?: in (?P<checkpoint_duration_s>[\d.]++))?'
    fields: {checkpoint_duration_s: {type: number}}
  saved:
    event: checkpoint
    literal: 'toy saved '
    pattern: 'toy saved (?P<step>\d++)'
    fields: {step: {type: integer}}
  stage:
    event: phase
    literal: 'toy stage '
    pattern: 'toy stage (?P<phase>\w++)'
    fields: {phase: {type: string}}
  model:
    event: header
    literal: 'toy model '
    pattern: 'toy model (?P<parameter_count>\d++)'
    fields: {parameter_count: {type: integer}}
  batch:
    event: header
    literal: 'toy batch '
    pattern: 'toy batch (?P<samples_per_step>\d++) x (?P<sequence_length>\d++)'
    fields: {samples_per_step: {type: integer}, sequence_length: {type: integer}}
  seed:
    event: header
    literal: 'toy seed '
    pattern: 'toy seed (?P<seed>\d++)'
    fields: {seed: {type: integer}}
  done:
    event: end
    literal: 'toy done in '
    pattern: 'toy done in (?P<training_time_s>[\d.]++) s'
    fields: {training_time_s: {type: number}}
  stopped:
    event: end
    literal: 'toy ended: '
    pattern: 'toy ended: (?P<status>\w++)'
    fields: {status: {type: string}}
"""

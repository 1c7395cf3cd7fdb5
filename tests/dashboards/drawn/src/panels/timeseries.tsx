// Lines over time, by Grafana's own chart, with the marks of the dashboard on it.
import {
  FieldColorModeId,
  identityOverrideProcessor,
  PanelPlugin,
  type DataFrame,
  type PanelProps,
} from '@grafana/data';
import type { Options } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import { TimeSeries, useTheme2, type UPlotConfigBuilder } from '@grafana/ui';
import { useLayoutEffect, useRef } from 'react';
import type uPlot from 'uplot';

import { option } from '../registries';
import { hasValue } from '../values';
import { NoData } from './noData';

const LOOKS: Record<string, unknown> = {
  drawStyle: 'line',
  lineInterpolation: 'linear',
  lineWidth: 1,
  lineStyle: undefined,
  fillOpacity: 0,
  gradientMode: 'none',
  spanNulls: false,
  showPoints: 'auto',
  pointSize: 5,
  barAlignment: 0,
  stacking: { mode: 'none', group: 'A' },
  thresholdsStyle: { mode: 'off' },
  scaleDistribution: { type: 'linear' },
  hideFrom: { legend: false, tooltip: false, viz: false },
  axisPlacement: 'auto',
  axisLabel: '',
  axisSoftMin: undefined,
  axisSoftMax: undefined,
};

function Chart({ data, options, fieldConfig, width, height, timeRange, timeZone }: PanelProps<Options>) {
  if (!hasValue(data.series)) {
    return <NoData fieldConfig={fieldConfig} />;
  }
  return (
    <TimeSeries
      frames={data.series}
      structureRev={data.structureRev}
      width={width}
      height={height}
      timeRange={timeRange}
      timeZone={timeZone}
      legend={options.legend}
    >
      {(builder) => <Marks builder={builder} marks={data.annotations ?? []} />}
    </TimeSeries>
  );
}

/** A line where each event begins. */
function Marks({ builder, marks }: { builder: UPlotConfigBuilder; marks: DataFrame[] }) {
  const theme = useTheme2();
  const latest = useRef(marks);
  const drawn = useRef<uPlot>(null);
  useLayoutEffect(() => {
    latest.current = marks;
    drawn.current?.redraw();
  }, [marks]);
  useLayoutEffect(() => {
    builder.addHook('draw', (plot) => {
      drawn.current = plot;
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.setLineDash([4, 4]);
      for (const { time, color } of latest.current.flatMap(begins)) {
        const x = plot.valToPos(time, 'x', true);
        if (x >= bbox.left && x <= bbox.left + bbox.width) {
          ctx.strokeStyle = theme.visualization.getColorByName(color);
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
        }
      }
      ctx.restore();
    });
  }, [builder, theme]);
  return null;
}

function begins(frame: DataFrame): { time: number; color: string }[] {
  const of = (name: string) => frame.fields.find((field) => field.name === name)?.values ?? [];
  const colors = of('color');
  return of('time').map((time: number, place: number) => ({ time, color: colors[place] ?? 'blue' }));
}

export const timeseries = new PanelPlugin<Options>(Chart).setDataSupport({ annotations: true }).useFieldConfig({
  standardOptions: { color: { defaultValue: { mode: FieldColorModeId.PaletteClassic } } } as never,
  useCustomConfig: (builder) => {
    for (const [path, value] of Object.entries(LOOKS)) {
      builder.addCustomEditor(option(path, identityOverrideProcessor, value) as never);
    }
  },
});
